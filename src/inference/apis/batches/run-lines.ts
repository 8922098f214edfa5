// Runs the lines of one batch: reads them in order, keeps a bounded number in hand, and stores results as they come.
// The batch's row says which lines are done, so another process can go on at any moment.

import type { BatchRow } from '#db/tables/batch-rows.ts';
import type { ListedEndpoint } from '#inference/apis/apis.ts';
import type { Files } from '#inference/apis/files/files.ts';
import { newId } from '#lib/ids.ts';
import { parseLine, toExpired } from './line.ts';
import { type InputLine, readLines } from './line-reader.ts';
import type { BatchRows } from './rows.ts';
import { type ServedLine, type ServeLineParts, serveLine } from './serve-line.ts';

export interface RunParts extends ServeLineParts {
  readonly files: Files;
  readonly rows: BatchRows;
  readonly concurrency: number;
  readonly maxLineBytes: number;
}

export interface LineJob {
  readonly batch: BatchRow;
  readonly endpoint: ListedEndpoint;
  /** Aborts everything: the batch is lost, cancelled, or left to another process. */
  readonly stop: AbortSignal;
  /** When it aborts, no further line starts. Those in flight go on. */
  readonly pause: AbortSignal;
  /** When it aborts, lines that are not done are given up. */
  readonly expire: AbortSignal;
}

/** Lines from the first one that is not done to the last one that was read. */
const maxWindow = 1_000;
/** Bytes of the lines in hand. */
const maxHeldBytes = 16 * 2 ** 20;
/** Results of one transaction. */
const maxResults = 200;
/** How long the first result waits for others, so that many share one transaction. */
const collectMs = 20;

/** Resolves with true when every line is done and stored. Rejects when `stop` aborts or a write fails. */
export async function runLines(parts: RunParts, job: LineJob): Promise<boolean> {
  const run = new Run(parts, job);
  return run.whole();
}

interface LineInHand {
  readonly run: AbortController;
  readonly wait: AbortController;
}

interface LineDone {
  readonly offset: number;
  readonly served: ServedLine;
}

class Run {
  readonly #parts: RunParts;
  readonly #job: LineJob;
  readonly #doneBefore: ReadonlySet<number>;
  /** Lines from the first that is not stored on: true if it is stored. In the order of the file. */
  readonly #window = new Map<number, boolean>();
  /** One pair of controllers per line: what listens to them ends with the line. */
  readonly #inHand = new Set<LineInHand>();
  #pending: LineDone[] = [];
  /** Bytes of lines in hand and of results that are not stored. */
  #heldBytes = 0;
  #readTo: number;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | null = null;
  #failure: unknown = null;
  #wake: () => void = () => {};

  constructor(parts: RunParts, job: LineJob) {
    this.#parts = parts;
    this.#job = job;
    this.#readTo = job.batch.done_offset;
    this.#doneBefore = new Set(JSON.parse(job.batch.done_ahead) as number[]);
  }

  async whole(): Promise<boolean> {
    const { files, maxLineBytes } = this.#parts;
    const { batch, stop, pause, expire } = this.#job;
    for (const signal of [stop, pause, expire]) signal.addEventListener('abort', this.#onSignal);
    try {
      const content = files.read(batch.input_file_id, batch.done_offset);
      for await (const line of readLines(content, batch.done_offset, maxLineBytes)) {
        await this.#until(() => this.#hasRoomFor(line));
        if (pause.aborted) break;
        this.#take(line);
      }
      await this.#until(() => this.#inHand.size === 0 && this.#isStored());
      return !pause.aborted;
    } finally {
      for (const signal of [stop, pause, expire])
        signal.removeEventListener('abort', this.#onSignal);
      for (const { run, wait } of this.#inHand) for (const one of [run, wait]) one.abort();
      clearTimeout(this.#timer);
      await this.#writing;
    }
  }

  readonly #onSignal = (): void => {
    const { stop, expire } = this.#job;
    for (const { run, wait } of this.#inHand) {
      wait.abort();
      if (stop.aborted || expire.aborted) run.abort();
    }
    this.#wake();
  };

  #isStored(): boolean {
    return this.#pending.length === 0 && this.#writing === null;
  }

  #hasRoomFor({ bytes }: InputLine): boolean {
    const { pause, expire } = this.#job;
    if (pause.aborted || this.#heldBytes === 0) return true;
    const maxLines = expire.aborted ? maxResults : this.#parts.concurrency;
    return (
      this.#heldBytes + bytes.length <= maxHeldBytes &&
      this.#inHand.size < maxLines &&
      this.#pending.length < maxResults &&
      this.#window.size < maxWindow
    );
  }

  /** Throws when the run stops or a write has failed. */
  async #until(isTrue: () => boolean): Promise<void> {
    for (;;) {
      if (this.#failure !== null) throw this.#failure;
      this.#job.stop.throwIfAborted();
      if (isTrue()) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #take(line: InputLine): void {
    this.#readTo = line.end;
    const isDone = this.#doneBefore.has(line.offset);
    this.#window.set(line.offset, isDone);
    if (isDone) return;
    const own = { run: new AbortController(), wait: new AbortController() };
    this.#inHand.add(own);
    this.#heldBytes += line.bytes.length;
    this.#serve(line, own)
      .then((served) => {
        if (served !== null) this.#add(line, served);
      })
      .catch((error) => {
        this.#failure ??= error;
      })
      .finally(() => {
        this.#inHand.delete(own);
        this.#heldBytes -= line.bytes.length;
        this.#wake();
      });
  }

  /** Null if the line is left to a later run. */
  async #serve(line: InputLine, { run, wait }: LineInHand): Promise<ServedLine | null> {
    const { stop, pause, expire } = this.#job;
    if (expire.aborted) return this.#giveUp(line);
    try {
      return await serveLine(this.#parts, this.#job, line, { run: run.signal, wait: wait.signal });
    } catch (error) {
      if (expire.aborted && !stop.aborted) return this.#giveUp(line);
      if (stop.aborted || pause.aborted) return null;
      throw error;
    }
  }

  #giveUp({ bytes }: InputLine): ServedLine {
    const request = parseLine(bytes, this.#job.endpoint.url, this.#parts.maxValues);
    const customId = 'custom_id' in request ? request.custom_id : '';
    return { result: toExpired(newId(), customId), usage: null };
  }

  #add({ offset }: InputLine, served: ServedLine): void {
    this.#pending.push({ offset, served });
    this.#heldBytes += served.result.text.length;
    if (this.#pending.length >= maxResults || this.#heldBytes > maxHeldBytes / 2) this.#write();
    else this.#timer ??= setTimeout(() => this.#write(), collectMs);
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#writing !== null || this.#failure !== null || this.#pending.length === 0) return;
    this.#writing = this.#store(this.#pending.splice(0, maxResults))
      .catch((error) => {
        this.#failure ??= error;
      })
      .finally(() => {
        this.#writing = null;
        this.#wake();
        this.#write();
      });
  }

  async #store(lines: readonly LineDone[]): Promise<void> {
    for (const { offset } of lines) this.#window.set(offset, true);
    for (const [offset, isDone] of this.#window) {
      if (!isDone) break;
      this.#window.delete(offset);
    }
    const [doneOffset = this.#readTo] = this.#window.keys();
    const doneAhead = [...this.#window].filter(([, isDone]) => isDone).map(([offset]) => offset);
    const isStored = await this.#parts.rows.add(this.#job.batch, {
      results: lines.map(({ served }) => served.result),
      usage: lines.flatMap(({ served }) => served.usage ?? []),
      doneOffset,
      doneAhead,
    });
    if (!isStored) throw new Error('the batch was cancelled or belongs to another process');
    for (const { served } of lines) this.#heldBytes -= served.result.text.length;
  }
}
