// The entry point of the child process: one model with its own event loop and thread pool. The API process survives
// whatever ends this process; when the API process dies, this one exits.

import { EngineError } from '#inference/engine.ts';
import type { PoolingOutput } from '#inference/engines/local/child/pooling/pooler.ts';
import type {
  RequestEvent,
  ToChild,
  ToParent,
  WireFailure,
} from '#inference/engines/local/protocol.ts';
import type { Usage } from '#inference/wire/response.ts';
import { shareCompileCache } from '#lib/computer/compile-cache.ts';
import { yieldMemory, yieldProcessor } from '#lib/computer/process-rank.ts';
import { type LoadedModel, loadModel } from './load.ts';
import type { RequestOutput } from './runtime.ts';

type RequestMessage = Extract<ToChild, { id: number }>;

let events: RequestEvent[] = [];
/** Usage that grew since the last chunk of its request, by request. */
const counts = new Map<number, Usage>();
let flushing = false;
let model: LoadedModel | null = null;
const cancels = new Map<number, () => void>();

function send(message: ToParent): void {
  if (process.connected) process.send?.(message);
}

function flush(): void {
  if (model === null) return;
  const { scheduler, pooler } = model;
  const running = scheduler.running + pooler.running;
  const waiting = scheduler.waiting + pooler.waiting;
  for (const [id, soFar] of counts) events.push({ kind: 'usage', id, soFar });
  counts.clear();
  send({ kind: 'batch', events, load: { running, waiting } });
  events = [];
}

/** Sends after the next batch has started on its own thread, so that the batch does not wait for the sending. */
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
  // Send what the request generated before the failure first.
  flush();
  send({ kind: 'failed', id, failure: toWire(error) });
}

function handle(loaded: LoadedModel, message: RequestMessage): void {
  const { id } = message;
  if (message.kind === 'ask') {
    loaded.answer(message.question).then(
      (answer) => send({ kind: 'answer', id, answer }),
      (error: unknown) => fail(id, error),
    );
  } else if (message.kind === 'pool') {
    const cancel = loaded.pooler.start({ ...message, output: toPoolingOutput(id) });
    cancels.set(id, cancel);
  } else if (message.kind === 'cancel') {
    cancels.get(id)?.();
    cancels.delete(id);
    flush();
  } else {
    let started = false;
    const output: RequestOutput = {
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
    };
    const cancel = loaded.start({ task: message.task, context: message.context, output });
    cancels.set(id, cancel);
  }
}

const toPoolingOutput = (id: number): PoolingOutput => ({
  started: () => void events.push({ kind: 'started', id }),
  vector: (index, vector, soFar) => void events.push({ kind: 'vector', id, index, vector, soFar }),
  ended() {
    cancels.delete(id);
    events.push({ kind: 'ended', id });
  },
  failed: (error) => fail(id, error),
});

async function load(options: Extract<ToChild, { kind: 'load' }>['options']): Promise<void> {
  try {
    model = await loadModel(options, flushSoon, Number(process.argv[2]));
    const { modelKind, window, threads, memoryBytes, gpu } = model.binding;
    if (modelKind !== 'chat') yieldProcessor();
    send({ kind: 'ready', modelKind, window, threads, memoryBytes, gpu });
    // At exit it would be too late for a process that is killed.
    shareCompileCache();
  } catch (error) {
    process.send?.({ kind: 'unable', failure: toWire(error) } satisfies ToParent, () =>
      process.exit(1),
    );
  }
}

process.on('message', (message: ToChild) => {
  if (message.kind === 'load') void load(message.options);
  else if (message.kind === 'ping') send({ kind: 'pong' });
  else if (message.kind === 'close')
    void Promise.all([model?.scheduler.stop(), model?.pooler.stop()]).then(exit);
  else if (model !== null) handle(model, message);
});

yieldMemory();

// A terminal sends its interrupt to the whole process group, but the parent decides when its children end.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});
// `process.exit` of Node 26.10 hung once in 25 times on a busy computer: it waited for a thread of
// V8 that waited for the main thread. After the parent has died, no process is left that would end
// this one.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));

function exit(): void {
  process.exit(0);
}
