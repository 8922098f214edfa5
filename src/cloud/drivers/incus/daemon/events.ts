// The daemon's lifecycle events over one websocket, which reconnects when it is lost. Each event names the
// instance that changed. Events sent while it was down are lost, so every connection is announced by `up`.

import type { MessageEvent, WebSocket } from 'undici';
import type { DaemonClient } from './client.ts';

export interface InstanceListener {
  /** `name` is the daemon's name of the instance. */
  changed(name: string): void;
  /** The stream is connected. Earlier changes may have been missed. */
  up(): void;
  down(): void;
}

export interface Events {
  close(): void;
}

const minPauseMs = 200;
const maxPauseMs = 10_000;

export function listenToEvents(client: DaemonClient, listener: InstanceListener): Events {
  let socket: WebSocket | undefined;
  let timer: NodeJS.Timeout | undefined;
  let pauseMs = minPauseMs;
  let closed = false;

  function connect() {
    const current = client.webSocket('/1.0/events', { type: 'lifecycle' });
    socket = current;
    let open = false;
    let over = false;
    current.addEventListener('open', () => {
      open = true;
      pauseMs = minPauseMs;
      listener.up();
    });
    current.addEventListener('message', (event: MessageEvent) => {
      const name = parseInstance(event.data);
      if (name !== undefined) listener.changed(name);
    });
    const end = () => {
      if (over) return;
      over = true;
      if (closed) return;
      if (open) listener.down();
      timer = setTimeout(connect, pauseMs);
      timer.unref();
      pauseMs = Math.min(maxPauseMs, pauseMs * 2);
    };
    current.addEventListener('error', end);
    current.addEventListener('close', end);
  }

  connect();
  return {
    close() {
      closed = true;
      clearTimeout(timer);
      socket?.close();
    },
  };
}

/** Returns the instance of an event, whose source is `/1.0/instances/<name>` and may continue. */
export function parseInstance(data: unknown): string | undefined {
  try {
    const { type, metadata } = JSON.parse(String(data));
    if (type !== 'lifecycle') return undefined;
    return /^\/1\.0\/instances\/([^/?]+)/.exec(String(metadata?.source))?.[1];
  } catch {
    return undefined;
  }
}
