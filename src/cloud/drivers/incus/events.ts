// The daemon's lifecycle events over one websocket that is kept open: each names the instance that changed.
// What was missed while it was down nobody knows, so every connection begins with `up`.

import type { MessageEvent, WebSocket } from 'undici';
import type { DaemonClient } from './client.ts';

export interface EventListener {
  /** By the instance's name at the daemon. */
  changed(name: string): void;
  /** Connected; whatever happened before was not told. */
  up(): void;
  down(): void;
}

export interface Events {
  close(): void;
}

const minPauseMs = 200;
const maxPauseMs = 10_000;

export function listenToEvents(client: DaemonClient, listener: EventListener): Events {
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

/** The instance that an event speaks of: its source is `/1.0/instances/<name>`, perhaps with more behind. */
export function parseInstance(data: unknown): string | undefined {
  try {
    const { type, metadata } = JSON.parse(String(data));
    if (type !== 'lifecycle') return undefined;
    return /^\/1\.0\/instances\/([^/?]+)/.exec(String(metadata?.source))?.[1];
  } catch {
    return undefined;
  }
}
