// A terminal in an element of the page, joined to a machine's shell. Output is acknowledged once it is
// shown, so that a machine that prints without end waits for the page instead of filling its memory.

import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import { nonce } from '../browser/nonce.ts';
import { styleSpansByScript, withNonce } from './csp-styles.ts';

/** The server takes 64 KiB at once; a pasted text may be longer. */
const chunkBytes = 16_384;

/** Told of each width on the way to another, a shell draws its prompt over what it printed before. */
const restMs = 150;

styleSpansByScript();

export interface Connection {
  close(): void;
}

interface Listeners {
  onOpen(): void;
  /** With what the server said, or null when it said nothing. */
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
  const tell = (message: object) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  };
  socket.onopen = () => {
    listeners.onOpen();
    terminal.focus();
  };
  socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
    terminal.write(new Uint8Array(data), () => tell({ shown: data.byteLength }));
  };
  socket.onclose = ({ reason }) => {
    terminal.options.disableStdin = true;
    terminal.options.cursorBlink = false;
    listeners.onClose(reason || null);
  };

  // Every key belongs to the shell but one, or the keyboard alone could not leave.
  terminal.attachCustomKeyEventHandler(({ shiftKey, key }) => {
    if (!shiftKey || key !== 'Escape') return true;
    terminal.blur();
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
  terminal.onResize(({ cols, rows }) => tell({ columns: cols, rows }));
  let resting: ReturnType<typeof setTimeout> | undefined;
  const resizes = new ResizeObserver(() => {
    clearTimeout(resting);
    resting = setTimeout(() => fit.fit(), restMs);
  });
  resizes.observe(element);

  return {
    close() {
      resizes.disconnect();
      clearTimeout(resting);
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
