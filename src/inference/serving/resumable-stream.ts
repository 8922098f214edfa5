// A streamed answer on its way to the client: who generates it now, what was sent of it, and how it goes on
// when that backend dies. Whoever reads it sees one stream.

import type { Backend, BackendList } from '#inference/backends/backend.ts';
import {
  type Call,
  type Engine,
  type EngineChunk,
  isCutOff,
  isRetryable,
  type ResponseStream,
  type TakeItem,
  type Task,
  type Usage,
  type WireEvents,
} from '#inference/engine.ts';
import type { Lease, Router } from '#inference/routing/router.ts';
import type {
  AskBackend,
  Asked,
  AttemptEvents,
  BackendRequest,
  Conclude,
  Trail,
} from './attempt.ts';
import {
  addUsage,
  afterSeam,
  type Continuation,
  canContinue,
  toContinuation,
  toGenerated,
  toLengthEnd,
} from './continuation.ts';
import type { Plan } from './plan.ts';
import type { Transcript } from './transcript.ts';

export interface StreamParts {
  list: BackendList;
  router: Router;
  events: AttemptEvents;
  ask: AskBackend;
  conclude: Conclude;
  openTranscript(kind: Task['kind']): Transcript;
}

const mostContinuations = 2;
/** The client waits for it in mid-answer. */
const countMs = 2000;

/** One is made for every stream, hence a class: its methods are made once. */
export class RunningStream {
  readonly #parts: StreamParts;
  readonly #plan: Plan;
  readonly #request: BackendRequest;
  readonly #onUsage: Call['onUsage'];
  #items: ResponseStream | null = null;
  #transcript: Transcript | null = null;
  /** What backends that died have used, and all together. */
  #before: Usage | null = null;
  #usage: Usage | null = null;
  #hasSent = false;
  #isWire = false;
  #sentTokens = 0;
  #lease: Lease | null = null;
  #firstTokenMs = 0;
  #continuations = 0;

  /** Resolves when the first chunk exists. The one who opened it calls `deliver`. */
  static async open(
    parts: StreamParts,
    plan: Plan,
    call: Call,
    trail: Trail,
  ): Promise<RunningStream> {
    const stream = new RunningStream(parts, plan, call, trail);
    stream.#begun(await parts.ask(plan.served.id, stream.#request, send));
    if (canContinue(plan.served, plan.task))
      stream.#transcript = parts.openTranscript(plan.task.kind);
    return stream;
  }

  private constructor(parts: StreamParts, plan: Plan, call: Call, trail: Trail) {
    this.#parts = parts;
    this.#plan = plan;
    this.#onUsage = call.onUsage;
    const onUsage = (soFar: Usage) => this.#tellUsage(addUsage(this.#before, soFar));
    this.#request = { task: plan.task, call: { ...call, onUsage }, trail, exclude: plan.unfit };
  }

  /** Hands on all of it, whoever it comes from, and gives its place back. Throws where it breaks off. */
  async deliver(take: TakeItem): Promise<void> {
    const takeOne: TakeItem = (item) => {
      const full = take(item);
      this.#sent(item);
      return full;
    };
    try {
      while (this.#items !== null) {
        try {
          if (this.#items.forEach !== undefined) await this.#items.forEach(takeOne);
          else
            for await (const item of this.#items) {
              const full = takeOne(item);
              if (full !== undefined) await full;
            }
          this.#items = null;
        } catch (error) {
          this.#items = await this.#resume(error);
        }
      }
    } finally {
      this.#transcript?.close();
      this.#lease?.backend.health.succeeded();
      this.#end(null);
    }
  }

  #begun({ lease, result, startMs }: Asked<ResponseStream>): void {
    this.#items = result;
    this.#lease = lease;
    this.#firstTokenMs = performance.now() - startMs;
    // The one that is being tried shall not wait for the end of a long answer to be trusted again; any
    // other is: failing in mid-answer each time must add up.
    if (lease.isProbe) {
      lease.backend.health.succeeded();
      this.#parts.router.proven(lease);
    }
  }

  #end(error: unknown): void {
    if (this.#lease === null) return;
    const ended = this.#lease;
    this.#lease = null;
    this.#parts.conclude(ended, error, this.#firstTokenMs);
  }

  #sent(item: EngineChunk | WireEvents): void {
    this.#hasSent = true;
    this.#transcript?.add(item);
    // What is in the wire's form is counted when it ends, and all that was counted was sent; of chunks some
    // may be lost that were counted.
    this.#isWire = typeof item === 'string';
    if (!this.#isWire) this.#sentTokens = this.#usage?.completion_tokens ?? 0;
  }

  /** The rest of the answer from another backend. Throws the given error where that can't be. */
  async #resume(error: unknown): Promise<ResponseStream | null> {
    const { trail, call } = this.#request;
    const failed = this.#lease?.backend;
    this.#end(call.signal.aborted ? null : error);
    if (!call.signal.aborted && !isCutOff(error)) call.onWork?.(false);
    if (call.signal.aborted || !isRetryable(error)) throw error;
    if (++this.#continuations > mostContinuations) throw error;
    const counter = this.#findCounter(failed);
    const next = await this.#toNext(counter);
    if (next === null) throw error;
    if (next === 'finished') return null;
    await this.#countBefore(counter);
    if (next === 'complete') return only(toLengthEnd(this.#plan.task.kind));
    this.#request.task = next.task;
    this.#excludeUnable(next.task, failed);
    try {
      const asked = await this.#parts.ask(this.#plan.served.id, this.#request, send);
      this.#begun(asked);
      if (trail.backend !== null) this.#parts.events.continued(trail.backend);
      return this.#hasSent ? afterSeam(asked.result, next.blanks) : asked.result;
    } catch {
      // It broke where it broke; that nobody could go on is no other failure.
      throw error;
    }
  }

  /** What is left to ask for; null where it can't go on. */
  async #toNext(
    counter: Engine | undefined,
  ): Promise<Continuation | 'finished' | 'complete' | null> {
    const { task, served } = this.#plan;
    const soFar = this.#transcript?.read() ?? null;
    if (soFar === null) return null;
    if (soFar.isFinished) return 'finished';
    if (this.#isWire) {
      // Where no vocabulary is known here, events were counted, and one may hold several tokens.
      const isGuess = served.vocabulary === 'other';
      const text = toGenerated(task, soFar.text);
      const counted = isGuess ? await counter?.countText?.(text) : null;
      this.#sentTokens = counted ?? this.#usage?.completion_tokens ?? 0;
    }
    return toContinuation(task, soFar.text, this.#sentTokens);
  }

  /** What was used until now. Who died has mostly not said how long the prompt was. */
  async #countBefore(counter: Engine | undefined): Promise<void> {
    const { task, promptTokens } = this.#plan;
    if (this.#usage === null) return;
    const count = () =>
      counter?.countPromptTokens(task, AbortSignal.timeout(countMs)).catch(() => null);
    const prompt_tokens = this.#usage.prompt_tokens || (promptTokens ?? (await count()) ?? 0);
    const completion_tokens = this.#sentTokens;
    const total_tokens = prompt_tokens + completion_tokens;
    this.#before = { ...this.#usage, prompt_tokens, completion_tokens, total_tokens };
    this.#tellUsage(this.#before);
  }

  #tellUsage(usage: Usage): void {
    this.#usage = usage;
    this.#onUsage?.(usage);
  }

  /** A backend that can say how many tokens something has, which only it may know. */
  #findCounter(failed: Backend | undefined): Engine | undefined {
    const others = this.#parts.list.forModel(this.#plan.served.id);
    const able = others.find((backend) => {
      const { engine, health } = backend;
      return backend !== failed && engine.countText !== undefined && health.state() === 'healthy';
    });
    return able?.engine;
  }

  /** Only those who can, and not the one that failed. */
  #excludeUnable(next: Task, failed: Backend | undefined): void {
    const exclude = new Set(this.#request.exclude);
    if (failed !== undefined) exclude.add(failed);
    if (next !== this.#plan.task && next.kind === 'chat') {
      for (const backend of this.#parts.list.forModel(this.#plan.served.id)) {
        if (!backend.continues) exclude.add(backend);
      }
    }
    this.#request.exclude = exclude;
  }
}

const send = ({ engine }: Backend, { task, call }: BackendRequest) => engine.stream(task, call);

async function* only(last: EngineChunk): AsyncGenerator<EngineChunk> {
  yield last;
}
