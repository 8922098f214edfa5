// Continuous batching: every step moves each running sequence on by one token and then reads a piece of
// a waiting prompt. Knows tokens and sequences only; what a token means is the work's own business.

import { FairQueue } from '#lib/async/fair-queue.ts';
import type { Binding } from './binding.ts';
import { claim, createSlots, type Slot } from './slots.ts';

/** Works of one family share a prompt: one reads it, then the others copy what it computed. */
export interface Family {
  reader: Work | null;
  read: boolean;
}

export interface Work {
  readonly caller: string;
  /** Lower goes first. */
  readonly priority: number;
  readonly prompt: readonly number[];
  readonly family: Family;
  /** Wants to see the logits of every prompt token, so nothing of the prompt can be reused. */
  readonly scoresPrompt: boolean;
  /** Set by `cancel`; nothing more is called on the work then. */
  cancelled: boolean;
  /** It has a sequence; `cached` prompt tokens need not be read. */
  started(cached: number): void;
  /** The logits that follow prompt token `position` can be sampled at `index` until this resolves. */
  scored(position: number, index: number): Promise<void>;
  /** Takes the next token from the logits at `index`; null when there is none after it. */
  next(index: number): Promise<number | null>;
  failed(error: Error): void;
  /** Called once, when nothing native uses the work any more. */
  dispose(): void;
}

export interface Scheduler {
  submit(work: Work): void;
  /** The sequence is free again before the next batch. */
  cancel(work: Work): void;
  readonly running: number;
  readonly waiting: number;
  /** Resolves when the batch now running is done; nothing runs after it. */
  stop(): Promise<void>;
}

/** A prompt is read in pieces of about this long, so that an abort is seen in time. */
const pieceMs = 40;
const leastPiece = 32;
/** Every scored position holds a whole vocabulary of logits in memory. */
const scoredPiece = 32;

export function createScheduler(binding: Binding, afterBatch: () => void): Scheduler {
  const { context } = binding;
  const slots = createSlots<Work>(binding.sequences);
  const queue = new FairQueue<Work>();
  let msPerPromptToken = pieceMs / 64;
  let clock = 0;
  let loop: Promise<void> | null = null;
  let stopped = false;
  let left: Work[] = [];
  let batched: readonly Piece[] = [];

  const mayGo = ({ family }: Work) => family.read || family.reader === null;

  async function admit(): Promise<void> {
    while (slots.some((slot) => slot.work === null)) {
      const work = queue.take(mayGo);
      if (work === undefined) return;
      const reusable = work.scoresPrompt ? 0 : reusableTokens(work.prompt);
      const slot = await claim(context, slots, work.prompt, reusable);
      if (slot === null) throw new Error('A free slot was counted and then not found');
      if (work.cancelled) {
        work.dispose();
        continue;
      }
      slot.work = work;
      slot.lastUsed = ++clock;
      slot.pending = work.prompt.slice(slot.cache.length);
      if (!work.family.read) work.family.reader = work;
      work.started(slot.cache.length);
    }
  }

  function release(slot: Slot<Work>): void {
    if (slot.work === null) return;
    if (slot.work.family.reader === slot.work) slot.work.family.reader = null;
    left.push(slot.work);
    slot.work = null;
    slot.pending = [];
    slot.lastUsed = ++clock;
  }

  function fail(slot: Slot<Work>, work: Work, error: Error): void {
    if (slot.work === work) release(slot);
    slot.cache.length = 0;
    context.disposeSequence(slot.id);
    if (!work.cancelled) work.failed(error);
  }

  /** Runs one batch and lets every work in it see its logits. */
  async function run(batch: readonly Piece[]): Promise<void> {
    batched = batch;
    const logits = await decode(batch);
    await Promise.all(
      batch.map(async (piece, at) => {
        try {
          if (logits instanceof Error) throw logits;
          await settle(piece, logits[at] ?? new Uint32Array(0));
        } catch (error) {
          fail(piece.slot, piece.work, error as Error);
        }
      }),
    );
    batched = [];
    afterBatch();
  }

  async function decode(batch: readonly Piece[]): Promise<Uint32Array[] | Error> {
    try {
      context.initBatch(batch.reduce((sum, piece) => sum + piece.tokens.length, 0));
      const logits = batch.map(({ slot, tokens, flagged }) =>
        context.addToBatch(slot.id, slot.cache.length, Uint32Array.from(tokens), flagged),
      );
      await context.decodeBatch();
      return logits;
    } catch (error) {
      return error as Error;
    }
  }

  async function settle({ slot, work, tokens }: Piece, logits: Uint32Array): Promise<void> {
    const from = slot.cache.length;
    for (const token of tokens) slot.cache.push(token);
    slot.pending = slot.pending.slice(tokens.length);
    if (slot.work !== work) return;
    if (work.scoresPrompt && from < work.prompt.length)
      for (const [at, index] of logits.entries()) {
        if (from + at + 1 >= work.prompt.length || slot.work !== work) break;
        await work.scored(from + at, index);
      }
    if (slot.pending.length > 0) return;
    if (work.family.reader === work) work.family.read = true;
    const token = slot.work === work ? await work.next(logits[logits.length - 1] ?? 0) : null;
    if (slot.work !== work) return;
    if (token === null) release(slot);
    else slot.pending = [token];
  }

  const isReading = (slot: Slot<Work>) =>
    slot.work !== null && slot.cache.length < slot.work.prompt.length;

  async function step(): Promise<void> {
    const decoding = slots.filter((slot) => slot.work !== null && !isReading(slot));
    if (decoding.length > 0) await run(decoding.map((slot) => toPiece(slot, 1)));
    // Sequences that read are batched alone: llama.cpp would cut a mixed batch into equal lengths anyway,
    // and a prompt token computed in a batch of one rounds differently from one computed among others.
    const started = performance.now();
    for (const slot of slots.filter(isReading).sort((a, b) => a.lastUsed - b.lastUsed)) {
      if (isReading(slot)) await read(slot);
      if (performance.now() - started >= pieceMs) break;
    }
  }

  async function read(slot: Slot<Work>): Promise<void> {
    // Those who read take turns, so that a short prompt need not wait for a long one.
    slot.lastUsed = ++clock;
    const budget = Math.round(pieceMs / msPerPromptToken);
    const length = toPieceLength(slot, Math.max(leastPiece, Math.min(budget, binding.batchSize)));
    const began = performance.now();
    const piece = toPiece(slot, length);
    await run([piece]);
    if (length < leastPiece || piece.work.scoresPrompt) return;
    const measured = (performance.now() - began) / length;
    msPerPromptToken = msPerPromptToken * 0.7 + measured * 0.3;
  }

  /** Not while a batch runs: a sampler may be at work on another thread. */
  function disposeLeft(): void {
    for (const work of left) work.dispose();
    left = [];
  }

  async function work(): Promise<void> {
    while (!stopped) {
      disposeLeft();
      await admit();
      if (slots.every((slot) => slot.work === null)) break;
      await step();
    }
    disposeLeft();
    loop = null;
    afterBatch();
  }

  return {
    submit(item) {
      queue.push(item.caller, item, item.priority);
      loop ??= Promise.resolve().then(work);
    },
    cancel(item) {
      item.cancelled = true;
      queue.remove(item.caller, item, item.priority);
      const slot = slots.find((candidate) => candidate.work === item);
      if (slot !== undefined) release(slot);
    },
    get running() {
      // A cancelled work's sequence is busy until its batch has ended.
      const isBatched = (slot: Slot<Work>) => batched.some((piece) => piece.slot === slot);
      return slots.filter((slot) => slot.work !== null || isBatched(slot)).length;
    },
    get waiting() {
      return queue.size;
    },
    async stop() {
      stopped = true;
      await loop;
    },
  };
}

interface Piece {
  slot: Slot<Work>;
  work: Work;
  tokens: readonly number[];
  flagged: Uint32Array;
}

function toPiece(slot: Slot<Work>, length: number): Piece {
  const { work } = slot;
  if (work === null) throw new Error('An empty slot was batched');
  const tokens = slot.pending.slice(0, length);
  const flags = work.scoresPrompt
    ? Uint32Array.from(tokens.keys())
    : length === slot.pending.length
      ? Uint32Array.of(length - 1)
      : new Uint32Array(0);
  return { slot, work, tokens, flagged: flags };
}

/** Never leaves a single token to be read alone. */
function toPieceLength({ pending, work }: Slot<Work>, budget: number): number {
  const limit = work?.scoresPrompt ? Math.min(budget, scoredPiece) : budget;
  const length = Math.min(limit, pending.length);
  return pending.length - length === 1 && length > 2 ? length - 1 : length;
}

/** Two tokens are read again, for the logits, and because one alone would round differently. */
function reusableTokens(prompt: readonly number[]): number {
  return Math.max(0, prompt.length - 2);
}
