// BOUNDARY between the code that manages the list of backends (configuration, rows, health) and the code that chooses
// one of them for a request. A backend is one engine behind one model id.

import type { Engine } from '#inference/engine.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import type { Work } from '#inference/routing/pace.ts';
import type { Usage } from '#inference/wire/response.ts';
import type { QueueLimits } from '#lib/async/bounded-fair-queue.ts';

export interface Backend {
  /** `<model id>/<name>`, stable over restarts. */
  readonly id: string;
  /** Sent to clients as `x-served-by`. */
  readonly name: string;
  readonly model: string;
  readonly engine: Engine;
  readonly kind: 'upstream' | 'weights' | 'stand-in';
  /** Share of the requests, relative to the other backends of the model. Default 1. */
  readonly weight: number;
  /** Maximum concurrent requests; null if the engine has its own queue or no limit is set. */
  readonly concurrency: number | null;
  /** True if the backend can continue a response from a given beginning. */
  readonly continues: boolean;
  readonly health: Health;
  /** The backend takes no new requests; running ones may finish. */
  readonly draining: boolean;
  /** Context window in tokens, as the backend reports it; null while unknown. */
  readonly contextWindow: number | null;
  /** A deployment runs it, and replaces it if it ends. */
  readonly isReplica: boolean;
  /** Set on the backend that stands for a deployment without a ready replica: it takes no request yet. */
  readonly hold: Hold | null;
  /** Requests in progress. Counted by the router alone. */
  outstanding: number;
  /** Requests that it has been given so far. Counted by the router alone. */
  taken: number;
  /** How long a unit of work takes it, in milliseconds; null if that is not known. See `routing/pace.ts`. */
  pace(): number | null;
  /** Called if the usage that it reported would cost more than was reserved, which is all that is charged. */
  exceeded(usage: Usage): void;
  /** Called once for each request, when it has ended. For statistics, not for health. */
  observe(request: Observation): void;
}

/** How requests wait for a deployment. */
export interface Hold extends QueueLimits {
  /** Why none will ever be served, as a sentence; null if a replica is starting or will. */
  readonly obstacle: string | null;
  /** True if the obstacle may pass by itself. Default: false. */
  readonly isPassing?: boolean;
  /** When a replica will probably be ready, in Unix milliseconds; null if that is not known. */
  readyBy(): number | null;
  /** What the replica that is starting does; null if none is. */
  progress(): string | null;
}

export interface Observation {
  /** Null if there was no token. */
  readonly firstTokenMs: number | null;
  /** Null if the request failed, or its tokens were not counted. */
  readonly work: Work | null;
  /** How the backend failed; null if it did not, or if the request or the client was at fault. */
  readonly error: string | null;
}

export interface Health {
  /**
   * `healthy`: takes requests. `ejected`: takes none until the ejection ends. `probation`: the ejection has ended, and
   * one request at a time may probe the backend (half-open).
   */
  state(): 'healthy' | 'ejected' | 'probation';
  /** Milliseconds until an ejected backend may be tried again; 0 if it may be used now. */
  retryAfterMs(): number;
  succeeded(): void;
  /** Reports a failure of the backend itself, not of the request. */
  failed(reason: string): void;
  /** Reports a response that this client's request may have spoilt. It counts if the last one was another client's. */
  spoilt(reason: string, client: string): void;
}

export interface BackendList {
  /** Backends of one model in the configured order; none if all are gone. The stand-in is only that of a new model. */
  forModel(model: string): readonly Backend[];
  /**
   * Called with a backend that failed a request. True if it is a replica that has ended: its deployment then holds
   * requests for the next one. Waits for a moment until that is known.
   */
  hasEnded(backend: Backend): Promise<boolean>;
  close(): Promise<void>;
}

export interface ServedModels extends BackendList {
  /**
   * The models that lists show: without a stand-in, only those that have or had a backend. The same array until
   * something changes.
   */
  listed(): readonly CatalogEntry[];
}
