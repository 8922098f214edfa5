// Keeps at most one child process alive for a model: starts it when it is needed, ends it when it is idle, and waits
// longer after each crash before the next start. A GPU that fails while the model is loaded is not tried again: the
// requests that wait are served on the CPU.

import { EngineError } from '#inference/engine.ts';
import type {
  ChildOptions,
  ModelInfo,
  ToChild,
  ToParent,
  WireFailure,
} from '#inference/engines/local/protocol.ts';
import { borrowNoGpu, type GpuLease } from './gpu-lease.ts';
import { type ModelProcess, startModelProcess } from './model-process.ts';

export interface SupervisorOptions {
  /** The model's name in messages. */
  name: string;
  /** Called at each start of the child. The supervisor adds the GPU. */
  toChildOptions: () => Omit<ChildOptions, 'gpu' | 'device'>;
  /** Called at each start of the child, unless a GPU has failed before. Never rejects. */
  borrowGpu: () => Promise<GpuLease>;
  /** The child is ended after this time without work. Null keeps it. */
  idleMs: number | null;
  startProcess?: typeof startModelProcess;
}

export interface SupervisorEvents {
  message(message: ToParent): void;
  /** The child has exited, and its requests have failed with it. */
  gone(error: EngineError): void;
  event(event: ProcessEvent): void;
}

export type ProcessEvent =
  | { kind: 'starting'; pid: number | null }
  | ({ kind: 'ready'; pid: number | null } & ModelInfo)
  | { kind: 'gpu_failed'; reason: string }
  | { kind: 'exited'; reason: string; expected: boolean }
  | { kind: 'output'; line: string };

const minBackOffMs = 500;
const maxBackOffMs = 30_000;

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #events: SupervisorEvents;
  #child: ModelProcess | null = null;
  #loading = Promise.withResolvers<void>();
  #loaded = false;
  /** Why the child could not load the model; null if it did not say. */
  #unable: WireFailure | null = null;
  #gpuFailed = false;
  /** Messages sent while the model is loaded. Bounded by the number of requests admitted. */
  #held: ToChild[] = [];
  #crashes = 0;
  /** Unix milliseconds before which no child is started. */
  #notBefore = 0;
  #closed = false;
  #idleTimer: NodeJS.Timeout | undefined;
  /** Children that were asked to exit and have not yet. */
  readonly #ending = new Set<Promise<void>>();

  constructor(options: SupervisorOptions, events: SupervisorEvents) {
    this.#options = options;
    this.#events = events;
  }

  /** Two if there are kernels for a GPU that may be used. A CPU needs its cores for the model. */
  get #poolThreads(): 1 | 2 {
    return this.#gpuFailed || this.#options.toChildOptions().kernels === null ? 1 : 2;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  get loaded(): boolean {
    return this.#loaded;
  }

  /** Starts the child unless it runs. Throws EngineError during a back-off and after `close`. */
  ensure(): void {
    const { name } = this.#options;
    if (this.#closed) throw new EngineError('unavailable', `${name} has been shut down.`);
    if (this.#child !== null) return;
    const waitMs = this.#notBefore - Date.now();
    if (waitMs > 0)
      throw new EngineError('unavailable', `${name} failed and is not started again yet.`, {
        code: 'model_unavailable',
        retryAfterMs: waitMs,
      });
    this.#loading = Promise.withResolvers<void>();
    // A rejection that nothing waits for must not end this process.
    this.#loading.promise.catch(() => {});
    this.#startChild();
  }

  /** Resolves when the model is loaded. */
  ready(): Promise<void> {
    return this.#loading.promise;
  }

  /** Holds the message until the model is loaded. */
  send(message: ToChild): void {
    if (this.#loaded) this.#child?.send(message);
    else if (message.kind === 'cancel')
      this.#held = this.#held.filter((each) => !isAbout(each, message.id));
    else if (this.#child !== null) this.#held.push(message);
  }

  /** Reports whether there is work. The idle timeout starts when there is none. */
  busy(now: boolean): void {
    const { idleMs } = this.#options;
    clearTimeout(this.#idleTimer);
    if (now || idleMs === null || this.#child === null) return;
    this.#idleTimer = setTimeout(() => void this.unload(), idleMs).unref();
  }

  /** Reports that a request was served, so that the next crash counts as the first one. */
  healthy(): void {
    this.#crashes = 0;
  }

  /** Ends the child as the idle timeout does. */
  async unload(): Promise<void> {
    await this.#endChild(`${this.#options.name} was unloaded.`);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#idleTimer);
    await this.#endChild(`${this.#options.name} is shutting down.`);
    await Promise.all(this.#ending);
  }

  #startChild(): void {
    const events = this.#events;
    const { toChildOptions, borrowGpu, startProcess = startModelProcess } = this.#options;
    this.#unable = null;
    const options = toChildOptions();
    /** Null until the child may load its model. */
    let lease: GpuLease | null = null;
    let hasExited = false;
    /** The first line of output that names an error. The child has seen no request by then. */
    let complaint: string | null = null;
    const child: ModelProcess = startProcess(
      {
        output: (line) => {
          if (!this.#loaded && /error/i.test(line)) complaint ??= line;
          events.event({ kind: 'output', line });
        },
        message: (message) => {
          if (message.kind === 'ready' && message.gpu === false) lease?.release();
          if (child === this.#child) this.#receive(child, message);
        },
        exit: (reason, expected) => {
          const unable = this.#unable;
          hasExited = true;
          lease?.release();
          events.event({ kind: 'exited', reason: unable?.message ?? reason, expected });
          if (child !== this.#child) return;
          // A refusal of our own, such as too little memory or a bad file, is not the GPU's fault.
          const refused =
            unable !== null && (unable.failure !== 'unavailable' || unable.code !== null);
          if (this.#loaded || expected || refused || (lease?.gpu ?? false) === false)
            return this.#lose(this.#toExitError(reason), expected);
          this.#gpuFailed = true;
          events.event({ kind: 'gpu_failed', reason: complaint ?? unable?.message ?? reason });
          this.#startChild();
        },
      },
      this.#poolThreads,
    );
    this.#child = child;
    events.event({ kind: 'starting', pid: child.pid });
    void (this.#gpuFailed ? borrowNoGpu() : borrowGpu()).then((borrowed) => {
      lease = borrowed;
      const { gpu, device } = borrowed;
      if (hasExited) borrowed.release();
      else child.send({ kind: 'load', options: { ...options, gpu, device } });
    });
  }

  #receive(child: ModelProcess, message: ToParent): void {
    if (message.kind === 'unable') this.#unable = message.failure;
    if (message.kind === 'ready') {
      this.#loaded = true;
      this.#events.event({ pid: child.pid, ...message });
      this.#loading.resolve();
      for (const each of this.#held) child.send(each);
      this.#held = [];
    }
    this.#events.message(message);
  }

  #toExitError(reason: string): EngineError {
    const unable = this.#unable;
    const { name } = this.#options;
    if (unable === null)
      return new EngineError('unavailable', `The process that runs ${name} ${reason}.`);
    return new EngineError(unable.failure, `${name} could not be loaded: ${unable.message}`, {
      code: 'model_unavailable',
      retryAfterMs: minBackOffMs,
    });
  }

  /** Forgets the child and fails everything that waits for it. */
  #lose(error: EngineError, expected: boolean): void {
    this.#child = null;
    this.#loaded = false;
    this.#held = [];
    if (!expected) {
      // One request may have caused the first crash, and the next request must not wait for that. A model that can't be
      // loaded stays so for a while.
      const step = this.#unable === null ? this.#crashes - 1 : this.#crashes;
      const backOffMs = step < 0 ? 0 : minBackOffMs * 2 ** step;
      this.#notBefore = Date.now() + Math.min(maxBackOffMs, backOffMs);
      this.#crashes++;
    }
    this.#loading.reject(error);
    this.#events.gone(error);
  }

  async #endChild(message: string): Promise<void> {
    const child = this.#child;
    if (child === null) return;
    this.#lose(new EngineError('unavailable', message), true);
    const end = child.close();
    this.#ending.add(end);
    await end;
    this.#ending.delete(end);
  }
}

function isAbout(message: ToChild, id: number): boolean {
  return 'id' in message && message.id === id;
}
