// BOUNDARY. What an endpoint computes instead of generating: embeddings, rankings, tokens.

import type { Engine, PoolingCall, Usage } from '#inference/engine.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import type { ModelKind } from '#inference/pooling.ts';

export interface Computation {
  /** What a model that serves the request can do, as it follows "can't". */
  readonly ability: string;
  /** The kind of model that is made for it; null if every model is able. */
  readonly modelKind: ModelKind | null;
  /** Bytes that backends read more often than they are in the body. */
  readonly repeatedBytes: number;
  /** Undefined if the engine lacks the ability. Throws like the engine's method. */
  start(engine: Engine): ((call: PoolingCall) => Promise<Computed>) | undefined;
}

export interface Computed {
  /** Null if the backend did not count them; 0 if nothing is billed. */
  readonly promptTokens: number | null;
  /** Returns the body, a large one as a WrittenResponse. Throws InferenceError if the model can't do what was asked. */
  toBody(served: CatalogEntry, usage: Usage): unknown;
}
