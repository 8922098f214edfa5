// A set of objects in which each knows its own position. Unlike a Set, it leaves nothing behind for the
// garbage collector: a Set's outgrown tables point to the newer ones, so that once a table is old, V8 keeps
// everything that was ever in it until the next full collection. With a Set, the requests in progress cost a
// tenth of the gateway's throughput (`bench/gateway.ts`).

export interface Indexed {
  /** Position in the list, maintained by the list; `notListed` outside of one. */
  index: number;
}

export const notListed = -1;

export class IndexedList<Item extends Indexed> {
  readonly #items: Item[] = [];

  get size(): number {
    return this.#items.length;
  }

  add(item: Item): void {
    if (item.index !== notListed) return;
    item.index = this.#items.length;
    this.#items.push(item);
  }

  /** Moves the last item into the freed position. */
  delete(item: Item): void {
    if (item.index === notListed) return;
    const last = this.#items.pop() as Item;
    if (last !== item) {
      this.#items[item.index] = last;
      last.index = item.index;
    }
    item.index = notListed;
  }

  /** A copy in no particular order, so that items may be deleted while it is iterated. */
  list(): Item[] {
    return this.#items.slice();
  }
}
