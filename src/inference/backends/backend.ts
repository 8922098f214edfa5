// BOUNDARY between who keeps the list of backends (configuration, rows, health) and who chooses among
// them for a request. A backend is one engine behind one model id.

import type { Engine } from '#inference/engine.ts';

export interface Backend {
  /** Stable over restarts: `<model id>/<name>`. */
  readonly id: string;
  /** Shown to clients as `x-served-by`. */
  readonly name: string;
  readonly model: string;
  readonly engine: Engine;
  readonly kind: 'upstream' | 'weights' | 'stand-in';
  /** A share of the work, relative to the others; 1 unless configured. */
  readonly weight: number;
  /** Requests it takes at once; null where the engine has a queue of its own. */
  readonly concurrency: number | null;
  /** It can go on from a given beginning of an answer. */
  readonly continues: boolean;
  readonly health: Health;
  /** Takes no new request; what runs may finish. */
  readonly draining: boolean;
  /** What it says it can hold, in tokens; null while that is not known. */
  readonly contextWindow: number | null;
  /** Requests it is working on now. Counted by whoever sends them. */
  outstanding: number;
  /** Told once of each request it was given, when that is over. For people who look at it, not for health. */
  observe(request: Observation): void;
}

export interface Observation {
  /** Null when it never got that far. */
  readonly firstTokenMs: number | null;
  /** By the backend's fault, not by the request's or because the client left. */
  readonly failed: boolean;
}

export interface Health {
  /**
   * `healthy`: send. `ejected`: don't, until its time is over. `probation`: its time is over; one request
   * at a time may find out (half-open).
   */
  state(): 'healthy' | 'ejected' | 'probation';
  /** When an ejected one may be tried again, in milliseconds from now; 0 when it may be used. */
  retryAfterMs(): number;
  succeeded(): void;
  /** A failure of the backend itself, not of the request. */
  failed(reason: string): void;
}

export interface BackendList {
  /** Those of one model, in the order configured. Never empty: the stand-in answers where nothing else is. */
  forModel(model: string): readonly Backend[];
  close(): Promise<void>;
}
