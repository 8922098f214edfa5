// A terminal in the page, connected to a machine's shell by a WebSocket. Output is acknowledged once it is shown,
// which gives backpressure: endless output does not fill the page's memory.

import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import { nonce } from '../browser/nonce.ts';
import { styleSpansByScript, withNonce } from './csp-styles.ts';

/** The server accepts messages of up to 64 KiB; pasted text may be longer. */
const chunkBytes = 16_384;

/** Debounces resizes: on each one a shell redraws its prompt over earlier output. */
const resizeDelayMs = 150;

styleSpansByScript();

export interface Connection {
  close(): void;
}

interface Listeners {
  onOpen(): void;
  /** The user pressed Shift+Escape. */
  onLeave(): void;
  /** `reason` is what the server sent, or null if it sent none. */
  onClose(reason: string | null): void;
}

export function connect(
  element: HTMLElement,
  instanceId: string,
  listeners: Listeners,
): Connection {
  const terminal = new Terminal({
    cursorBlink: true,
    fontFamily: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
    fontSize: 14,
    scrollback: 5000,
    theme: { background: '#1b1d1f', foreground: '#e9ecef' },
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  withNonce(nonce, () => terminal.open(element));
  fit.fit();

  const socket = new WebSocket(toAddress(instanceId, terminal));
  socket.binaryType = 'arraybuffer';
  const sendMessage = (message: object) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  };
  socket.onopen = () => {
    listeners.onOpen();
    terminal.focus();
  };
  socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
    terminal.write(new Uint8Array(data), () => sendMessage({ shown: data.byteLength }));
  };
  socket.onclose = ({ reason }) => {
    terminal.options.disableStdin = true;
    terminal.options.cursorBlink = false;
    listeners.onClose(reason || null);
  };

  // Shift+Escape leaves the terminal. All other keys go to the shell, so keyboard users need one way out. Once the shell
  // has ended, Tab leaves it too.
  terminal.attachCustomKeyEventHandler(({ shiftKey, key }) => {
    if (key === 'Tab' && terminal.options.disableStdin) return false;
    if (!shiftKey || key !== 'Escape') return true;
    terminal.blur();
    listeners.onLeave();
    return false;
  });
  const encoder = new TextEncoder();
  terminal.onData((text) => send(socket, encoder.encode(text)));
  terminal.onBinary((text) =>
    send(
      socket,
      Uint8Array.from(text, (one) => one.charCodeAt(0)),
    ),
  );
  terminal.onResize(({ cols, rows }) => sendMessage({ columns: cols, rows }));
  let resizeTimer: ReturnType<typeof setTimeout> | undefined;
  const resizes = new ResizeObserver(() => {
    clearTimeout(resizeTimer);
    resizeTimer = setTimeout(() => fit.fit(), resizeDelayMs);
  });
  resizes.observe(element);

  return {
    close() {
      resizes.disconnect();
      clearTimeout(resizeTimer);
      socket.onclose = null;
      socket.close();
      terminal.dispose();
    },
  };
}

function send(socket: WebSocket, bytes: Uint8Array<ArrayBuffer>): void {
  if (socket.readyState !== WebSocket.OPEN) return;
  for (let at = 0; at < bytes.length; at += chunkBytes) {
    socket.send(bytes.subarray(at, at + chunkBytes));
  }
}

function toAddress(instanceId: string, { cols, rows }: Terminal): string {
  const path = `/dashboard/api/instances/${instanceId}/terminal?columns=${cols}&rows=${rows}`;
  return `${window.location.origin.replace(/^http/, 'ws')}${path}`;
}
