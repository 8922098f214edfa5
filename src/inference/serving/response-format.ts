// BOUNDARY. How one API writes the response to one request. Everything before it is the same for all APIs: a request is
// translated into a task, and the task's response or stream of chunks is handed to its format.

import type { ErrorFormat } from '#http/error-format.ts';
import type { Engine, Envelope, PoolingCall } from '#inference/engine.ts';
import type { InferenceError } from '#inference/errors.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import type { ModelKind } from '#inference/pooling.ts';
import type { EngineChunk, EngineResponse, Usage, WireEvents } from '#inference/wire/response.ts';
import type { FindNames } from './own-names.ts';

/** Created for each request, since what is written may depend on it. */
export interface ResponseFormat {
  /** The endpoint's name in usage rows, metrics and traces. */
  readonly operation: string;
  readonly errors: ErrorFormat;
  /** For errors that speak of the task. Absent if the request names its members as the task does. */
  readonly names?: FindNames;
  /** What is computed instead of generating. The methods below are not called then. */
  readonly computation?: Computation;
  /** `application/x-ndjson` for Ollama; server-sent events if absent. */
  readonly streamType?: string;
  /**
   * A stream is opened once its first chunk exists, so that a failure to start is still an HTTP
   * error. If this is true and the first chunk takes long, because the model loads or is busy, it
   * is opened without one and kept alive. Default false.
   */
  readonly opensEarly?: boolean;
  /**
   * True if `begin` needs the length of the prompt. It is counted if the engine has not reported it. A stream that is
   * opened before the first chunk exists is then only kept alive until `begin`.
   */
  readonly needsPromptTokens?: boolean;
  /** False if a stream ends without its usage, and need not wait for the count. Default true. */
  readonly sendsUsage?: boolean;
  /** True if a large response that was written elsewhere is sent as it is, and `toWhole` not called for it. */
  readonly takesWritten?: boolean;

  /** True if this error is reported inside a stream with status 200, although nothing was generated. */
  isSentInStream?(error: InferenceError): boolean;
  /** Returns the body of a whole response, to be written as JSON. It is awaited before anything is sent. */
  toWhole(response: EngineResponse, envelope: Envelope): unknown;
  openStream(envelope: Envelope): StreamFormat;
}

/**
 * How one stream is written. What its methods return is sent as it is: byte strings (see
 * `lib/memory/byte-string.ts`).
 */
export interface StreamFormat {
  /**
   * What precedes the first chunk. The usage is null if the stream is opened before the first chunk exists and the
   * format doesn't need the length of the prompt.
   */
  begin(usage: Usage | null): WireEvents;
  /** `chunksOf` turns an engine's wire events into chunks, for formats that don't pass them on as they are. */
  take(item: EngineChunk | WireEvents): WireEvents;
  /** What follows the last chunk. It is awaited before it is sent. */
  end(usage: Usage): WireEvents | Promise<WireEvents>;
  /** Ends a stream that failed. It is awaited before it is sent. */
  fail(error: InferenceError): WireEvents | Promise<WireEvents>;
  /** Sent while there is nothing else to send. A comment line if absent. */
  keepAlive?(): WireEvents;
  /** What a stream waits for, if the client wants to know. A comment line if absent. */
  progress?(text: string): WireEvents;
  /** Takes members of the engine's events besides their choices, e.g. `timings`. Absent if they are not sent. */
  takeRest?(members: Record<string, unknown>): void;
}

/** BOUNDARY. What an endpoint computes instead of generating: embeddings, rankings, tokens. */
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
