// Which choices of a stream have started, and which have finished.

import { countPrompts, type Task } from '#inference/engine.ts';

export class ChoiceProgress {
  /** Choices that the request asks for. */
  readonly expected: number;
  readonly #seen: number[] = [];
  readonly #finished: number[] = [];

  constructor(task: Task) {
    this.expected = (task.body.n ?? 1) * countPrompts(task);
  }

  get hasAnyFinished(): boolean {
    return this.#finished.length > 0;
  }

  note(index: number, isLast: boolean): void {
    if (!this.#seen.includes(index)) this.#seen.push(index);
    if (isLast) this.#finished.push(index);
  }

  isFinished(index: number): boolean {
    return this.#finished.includes(index);
  }

  /**
   * True if every choice seen has finished. A server may send fewer choices than requested, but if the stream was
   * cut off, the missing ones may have been lost.
   */
  hasFinished(isCut: boolean): boolean {
    const least = isCut ? this.expected : 1;
    return this.#finished.length >= least && this.#finished.length === this.#seen.length;
  }
}

export function indexOf({ index }: { index?: unknown }): number {
  return typeof index === 'number' ? index : 0;
}
