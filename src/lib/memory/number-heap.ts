// A heap of numbers, of which the smallest comes out first. It exists for loops that take millions of them.

export class NumberHeap {
  readonly #numbers: number[] = [];

  push(added: number): void {
    const numbers = this.#numbers;
    let at = numbers.length;
    numbers.push(added);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = numbers[parent] ?? added;
      if (above <= added) break;
      numbers[at] = above;
      at = parent;
    }
    numbers[at] = added;
  }

  /** Returns undefined if there is none. */
  pop(): number | undefined {
    const numbers = this.#numbers;
    const smallest = numbers[0];
    const moved = numbers.pop();
    if (moved === undefined || numbers.length === 0) return smallest;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= numbers.length) break;
      if ((numbers[child + 1] ?? Infinity) < (numbers[child] ?? Infinity)) child++;
      const below = numbers[child] ?? moved;
      if (below >= moved) break;
      numbers[at] = below;
      at = child;
    }
    numbers[at] = moved;
    return smallest;
  }
}
