// Counts things by key, such as open streams or bytes by account. A key with a count of zero takes no memory.

export class KeyCounts {
  readonly #counts = new Map<string, number>();

  /** Keys with a count above zero. */
  get size(): number {
    return this.#counts.size;
  }

  get(key: string): number {
    return this.#counts.get(key) ?? 0;
  }

  add(key: string, count = 1): void {
    this.#counts.set(key, this.get(key) + count);
  }

  remove(key: string, count = 1): void {
    const left = this.get(key) - count;
    if (left > 0) this.#counts.set(key, left);
    else this.#counts.delete(key);
  }
}
