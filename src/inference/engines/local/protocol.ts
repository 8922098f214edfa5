// What the engine and its child say to each other. Chunks of one batch travel together, in one message.

import type { EngineChunk, EngineFailure, Task, Usage } from '#inference/engine.ts';
import type { CoreOptions, RequestContext } from '#inference/engines/local/child/runtime.ts';

export type ToChild =
  | { kind: 'load'; options: CoreOptions }
  | { kind: 'start'; id: number; task: Task; context: RequestContext }
  | { kind: 'cancel'; id: number }
  | { kind: 'count'; id: number; task: Task }
  | { kind: 'ping' }
  | { kind: 'close' };

export type ToParent =
  | ({ kind: 'ready' } & Loaded)
  | { kind: 'unable'; failure: WireFailure }
  | { kind: 'batch'; events: RequestEvent[]; load: ChildLoad }
  | { kind: 'counted'; id: number; tokens: number }
  | { kind: 'failed'; id: number; failure: WireFailure }
  | { kind: 'pong' };

/** What became of loading. */
export interface Loaded {
  window: number;
  threads: number;
  memoryBytes: number;
  /** What it runs on besides the CPU. */
  gpu: 'cuda' | 'vulkan' | 'metal' | false;
}

export type RequestEvent =
  | { kind: 'started'; id: number }
  | { kind: 'chunk'; id: number; chunk: EngineChunk; soFar: Usage }
  /** What was generated without a chunk: held back, or of a candidate that is not chosen. */
  | { kind: 'usage'; id: number; soFar: Usage }
  | { kind: 'ended'; id: number };

/** Sequences at work and choices waiting for one. */
export interface ChildLoad {
  running: number;
  waiting: number;
}

export interface WireFailure {
  failure: EngineFailure;
  message: string;
  code: string | null;
  param: string | null;
}
