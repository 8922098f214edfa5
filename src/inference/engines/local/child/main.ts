// Entry of the child process: one model, its own event loop and thread pool. Whatever kills it, the API
// process lives on; when the API process dies, so does this one.

import { EngineError, type Usage } from '#inference/engine.ts';
import type {
  RequestEvent,
  ToChild,
  ToParent,
  WireFailure,
} from '#inference/engines/local/protocol.ts';
import { type LoadedModel, loadModel } from './load.ts';

type Work = Extract<ToChild, { id: number }>;

let events: RequestEvent[] = [];
/** Counts that grew since the last chunk of their request. */
const counts = new Map<number, Usage>();
let flushing = false;
let model: LoadedModel | null = null;
const cancels = new Map<number, () => void>();

function send(message: ToParent): void {
  if (process.connected) process.send?.(message);
}

function flush(): void {
  if (model === null) return;
  const { running, waiting } = model.scheduler;
  for (const [id, soFar] of counts) events.push({ kind: 'usage', id, soFar });
  counts.clear();
  send({ kind: 'batch', events, load: { running, waiting } });
  events = [];
}

/** By then the next batch is under way on its own thread, and does not wait for the sending. */
function flushSoon(): void {
  if (flushing) return;
  flushing = true;
  setImmediate(() => {
    flushing = false;
    flush();
  });
}

function toWire(error: unknown): WireFailure {
  const { message } = error as Error;
  return error instanceof EngineError
    ? { failure: error.failure, message, code: error.code, param: error.param }
    : { failure: 'unavailable', message, code: null, param: null };
}

function fail(id: number, error: unknown): void {
  cancels.delete(id);
  // What it generated before goes out first.
  flush();
  send({ kind: 'failed', id, failure: toWire(error) });
}

function handle(loaded: LoadedModel, work: Work): void {
  const { id } = work;
  if (work.kind === 'count') {
    loaded.count(work.task).then(
      (tokens) => send({ kind: 'counted', id, tokens }),
      (error: unknown) => fail(id, error),
    );
  } else if (work.kind === 'cancel') {
    cancels.get(id)?.();
    cancels.delete(id);
    flush();
  } else {
    let started = false;
    const cancel = loaded.start(work.task, work.context, {
      started() {
        if (!started) events.push({ kind: 'started', id });
        started = true;
      },
      chunk(chunk, soFar) {
        counts.delete(id);
        events.push({ kind: 'chunk', id, chunk, soFar });
      },
      counted(soFar) {
        counts.set(id, soFar);
      },
      ended() {
        cancels.delete(id);
        events.push({ kind: 'ended', id });
      },
      failed: (error) => fail(id, error),
    });
    cancels.set(id, cancel);
  }
}

async function load(options: Extract<ToChild, { kind: 'load' }>['options']): Promise<void> {
  try {
    model = await loadModel(options, flushSoon);
    const { window, threads, memoryBytes, gpu } = model.binding;
    send({ kind: 'ready', window, threads, memoryBytes, gpu });
  } catch (error) {
    process.send?.({ kind: 'unable', failure: toWire(error) } satisfies ToParent, () =>
      process.exit(1),
    );
  }
}

process.on('message', (message: ToChild) => {
  if (message.kind === 'load') void load(message.options);
  else if (message.kind === 'ping') send({ kind: 'pong' });
  else if (message.kind === 'close') void (model?.scheduler.stop() ?? Promise.resolve()).then(exit);
  else if (model !== null) handle(model, message);
});

// The terminal's interrupt goes to the whole group; the parent decides when its children end.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});
process.on('disconnect', exit);

function exit(): void {
  process.exit(0);
}
