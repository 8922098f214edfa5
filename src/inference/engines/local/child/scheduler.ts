// Continuous batching: each step moves every generating sequence on by one token and then reads a piece of a waiting
// prompt. The scheduler knows tokens and sequences only; a generation decides what its tokens mean.

import { FairQueue } from '#lib/async/fair-queue.ts';
import type { Binding } from './binding.ts';
import type { Generation } from './generation.ts';
import type { SecondThread } from './second-thread.ts';
import { claimSlot, createSlots, type Slot } from './slots.ts';
import { createWakefulness } from './wakefulness.ts';

/** Target time to read one piece of a prompt, so that a cancelled request stops soon. */
const pieceMs = 40;
const minPieceTokens = 32;

export class Scheduler {
  readonly #binding: Binding;
  readonly #afterBatch: () => void;
  readonly #secondThread: SecondThread | null;
  readonly #stayAwake = createWakefulness();
  readonly #slots: readonly Slot[];
  readonly #queue = new FairQueue<Generation>();
  /** A moving average, to choose the length of the next piece. */
  #msPerPromptToken = pieceMs / 64;
  /** Counts uses of slots, so that `lastUsed` puts them in order. */
  #useCount = 0;
  /** The running loop; null while there is nothing to do. */
  #loop: Promise<void> | null = null;
  #stopped = false;
  /** Generations that have ended but may still be used by the current batch. */
  #ended: Generation[] = [];
  #batch: readonly Piece[] = [];

  /**
   * `afterBatch` is called when every generation of a batch has its token, and when the loop ends.
   * `secondThread` is null if the pool has one thread.
   */
  constructor(binding: Binding, afterBatch: () => void, secondThread: SecondThread | null) {
    this.#binding = binding;
    this.#afterBatch = afterBatch;
    this.#secondThread = secondThread;
    this.#slots = createSlots(binding.sequences);
  }

  get running(): number {
    // The sequence of a cancelled generation is busy until its batch has ended.
    const isBatched = (slot: Slot) => this.#batch.some((piece) => piece.slot === slot);
    return this.#slots.filter((slot) => slot.generation !== null || isBatched(slot)).length;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  submit(generation: Generation): void {
    this.#queue.push(generation.caller, generation, generation.priority);
    this.#loop ??= Promise.resolve().then(() => this.#runLoop());
  }

  /** Frees the sequence before the next batch. */
  cancel(generation: Generation): void {
    generation.cancelled = true;
    this.#queue.remove(generation.caller, generation, generation.priority);
    const slot = this.#slots.find((each) => each.generation === generation);
    if (slot !== undefined) this.#release(slot);
  }

  /** Resolves when the current batch has ended. Nothing runs after it. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#loop;
  }

  async #runLoop(): Promise<void> {
    while (!this.#stopped) {
      this.#disposeEnded();
      await this.#admit();
      if (this.#slots.every((slot) => slot.generation === null)) break;
      await this.#step();
    }
    this.#disposeEnded();
    this.#stayAwake(false);
    this.#loop = null;
    this.#afterBatch();
  }

  /** Never called while a batch runs: a sampler may be in use on another thread. */
  #disposeEnded(): void {
    for (const generation of this.#ended) generation.dispose();
    this.#ended = [];
  }

  /** Gives free slots to waiting generations, except those whose prompt another generation is reading. */
  async #admit(): Promise<void> {
    const mayStart = ({ sharedPrompt }: Generation) =>
      sharedPrompt.isRead || sharedPrompt.reader === null;
    while (this.#slots.some((slot) => slot.generation === null)) {
      const generation = this.#queue.take(mayStart);
      if (generation === undefined) return;
      const slot = await this.#claim(generation);
      if (slot === null) {
        generation.dispose();
        continue;
      }
      slot.generation = generation;
      slot.lastUsed = ++this.#useCount;
      slot.pending = generation.prompt.slice(slot.cache.length);
      if (!generation.sharedPrompt.isRead) generation.sharedPrompt.reader = generation;
      generation.started(slot.cache.length);
    }
  }

  /** Null if the generation has failed, because no sequence could be prepared, or was cancelled meanwhile. */
  async #claim(generation: Generation): Promise<Slot | null> {
    const { prompt, scoresPrompt } = generation;
    // The last two tokens are always read: for the logits, and because a single token rounds differently.
    const reusable = scoresPrompt ? 0 : Math.max(0, prompt.length - 2);
    try {
      const slot = await claimSlot(this.#binding.context, this.#slots, prompt, reusable);
      if (slot === null) throw new Error('A free slot was counted and then not found');
      return generation.cancelled ? null : slot;
    } catch (error) {
      if (!generation.cancelled) generation.failed(error as Error);
      return null;
    }
  }

  async #step(): Promise<void> {
    const generating = this.#slots.filter((slot) => slot.generation !== null && !isReading(slot));
    if (generating.length > 0) await this.#runBatch(generating.map((slot) => toPiece(slot, 1)));
    // Prompts are batched apart from generating sequences: llama.cpp would cut a mixed batch into equal lengths anyway,
    // and a prompt token computed in a batch of one rounds differently from one computed among others.
    const startedAt = performance.now();
    for (const slot of this.#slots.filter(isReading).sort((a, b) => a.lastUsed - b.lastUsed)) {
      if (isReading(slot)) await this.#readPiece(slot);
      if (performance.now() - startedAt >= pieceMs) break;
    }
  }

  async #readPiece(slot: Slot): Promise<void> {
    // The slots take turns, so that a short prompt does not wait for a long one.
    slot.lastUsed = ++this.#useCount;
    const timed = Math.round(pieceMs / this.#msPerPromptToken);
    const maxTokens = Math.max(minPieceTokens, Math.min(timed, this.#binding.batchSize));
    const length = toPieceLength(slot, maxTokens);
    const piece = toPiece(slot, length);
    const startedAt = performance.now();
    await this.#runBatch([piece]);
    if (length < minPieceTokens || piece.generation.scoresPrompt) return;
    const measured = (performance.now() - startedAt) / length;
    this.#msPerPromptToken = this.#msPerPromptToken * 0.7 + measured * 0.3;
  }

  /** Computes one batch and lets every generation in it use its logits. */
  async #runBatch(batch: readonly Piece[]): Promise<void> {
    this.#batch = batch;
    const { logits, computed } = decode(this.#binding, batch);
    // Queued between the batch and its samples.
    this.#secondThread?.park();
    if (this.#binding.gpu !== false) this.#runBesideGpu(batch, computed);
    const settled = batch.map(async (piece, at) => {
      const used = this.#settle(piece, logits[at] ?? new Uint32Array(0), computed);
      // A sample may fail at once, but the context must not change while the batch runs. If both
      // fail, the batch says why.
      const results = await Promise.allSettled([computed, used]);
      const failure = results.find((result) => result.status === 'rejected');
      if (failure !== undefined) this.#fail(piece, failure.reason);
    });
    await Promise.all(settled);
    this.#batch = [];
    this.#afterBatch();
  }

  /**
   * Each step costs a GPU little more than a millisecond, so that the rest of a step matters. With
   * an event loop that does not sleep, one stream of a 1B model was 3 % faster, and one of 8B or
   * eight were not. With a second thread for samples, eight streams of 1B were 16 % faster; two
   * more threads wait for a lock in the addon (bench/RESULTS.md, "Models on a GPU").
   */
  #runBesideGpu(batch: readonly Piece[], computed: Promise<void>): void {
    this.#stayAwake(this.running === 1);
    if (batch.length === 1) return;
    computed.then(
      () => this.#secondThread?.release(),
      () => {},
    );
  }

  async #settle(piece: Piece, logits: Uint32Array, computed: Promise<void>): Promise<void> {
    const { slot, generation, tokens } = piece;
    const isCurrent = () => slot.generation === generation;
    const from = slot.cache.length;
    for (const token of tokens) slot.cache.push(token);
    slot.pending = slot.pending.slice(tokens.length);
    if (generation.scoresPrompt && from < generation.prompt.length) {
      await computed;
      for (const [at, index] of logits.entries()) {
        if (from + at + 1 >= generation.prompt.length || !isCurrent()) break;
        await generation.scored(from + at, index);
      }
    }
    if (slot.pending.length > 0 || !isCurrent()) return;
    const index = logits.at(-1);
    // The batch could not be built.
    if (index === undefined) return;
    const token = await generation.next(index, computed);
    if (!isCurrent()) return;
    if (generation.sharedPrompt.reader === generation) generation.sharedPrompt.isRead = true;
    if (token === null) this.#release(slot);
    else slot.pending = [token];
  }

  #release(slot: Slot): void {
    const { generation } = slot;
    if (generation === null) return;
    if (generation.sharedPrompt.reader === generation) generation.sharedPrompt.reader = null;
    this.#ended.push(generation);
    slot.generation = null;
    slot.pending = [];
    slot.lastUsed = ++this.#useCount;
  }

  #fail({ slot, generation }: Piece, error: Error): void {
    if (slot.generation === generation) this.#release(slot);
    slot.cache.length = 0;
    this.#binding.context.disposeSequence(slot.id);
    if (!generation.cancelled) generation.failed(error);
  }
}

interface QueuedBatch {
  /** The indexes of each piece's logits. */
  readonly logits: readonly Uint32Array[];
  /** Rejects with the error that all pieces share. */
  readonly computed: Promise<void>;
}

function decode({ context }: Binding, batch: readonly Piece[]): QueuedBatch {
  try {
    context.initBatch(batch.reduce((sum, piece) => sum + piece.tokens.length, 0));
    const logits = batch.map(({ slot, tokens, flagged }) =>
      context.addToBatch(slot.id, slot.cache.length, Uint32Array.from(tokens), flagged),
    );
    return { logits, computed: context.decodeBatch() };
  } catch (error) {
    return { logits: [], computed: Promise.reject(error) };
  }
}

/** The tokens that one slot adds to a batch: the token it generated last, or a piece of its prompt. */
interface Piece {
  readonly slot: Slot;
  readonly generation: Generation;
  readonly tokens: readonly number[];
  /** The indexes in `tokens` whose logits are needed. */
  readonly flagged: Uint32Array;
}

/** Each scored position holds logits for the whole vocabulary in memory. */
const maxScoredPieceTokens = 32;

/** True while the slot's sequence does not hold the whole prompt. */
function isReading({ generation, cache }: Slot): boolean {
  return generation !== null && cache.length < generation.prompt.length;
}

function toPiece(slot: Slot, length: number): Piece {
  const { generation } = slot;
  if (generation === null) throw new Error('An empty slot was batched');
  const tokens = slot.pending.slice(0, length);
  return { slot, generation, tokens, flagged: toFlagged(generation, tokens, slot.pending) };
}

function toFlagged(
  { scoresPrompt }: Generation,
  tokens: readonly number[],
  pending: readonly number[],
): Uint32Array {
  if (scoresPrompt) return Uint32Array.from(tokens.keys());
  const isLast = tokens.length === pending.length;
  return isLast ? Uint32Array.of(tokens.length - 1) : new Uint32Array(0);
}

/** Never leaves a single token for the next piece, because it would round differently on its own. */
function toPieceLength({ pending, generation }: Slot, maxTokens: number): number {
  const max = generation?.scoresPrompt ? Math.min(maxTokens, maxScoredPieceTokens) : maxTokens;
  const length = Math.min(max, pending.length);
  return pending.length - length === 1 && length > 2 ? length - 1 : length;
}
