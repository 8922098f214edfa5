// A waiting line with one lane per caller, served in turns, so that a caller with a thousand requests
// delays a caller with one by one turn only. Its length is bounded by whoever fills it.

export class FairQueue<Item> {
  readonly #lanes = new Map<string, Item[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(caller: string, item: Item): void {
    const lane = this.#lanes.get(caller);
    if (lane === undefined) this.#lanes.set(caller, [item]);
    else lane.push(item);
    this.#size++;
  }

  /** Takes the first item that may go, from the lane whose turn it is; the lane goes to the back. */
  take(mayGo: (item: Item) => boolean): Item | undefined {
    for (const [caller, lane] of this.#lanes) {
      const at = lane.findIndex(mayGo);
      if (at < 0) continue;
      const [item] = lane.splice(at, 1);
      this.#size--;
      this.#lanes.delete(caller);
      if (lane.length > 0) this.#lanes.set(caller, lane);
      return item;
    }
    return undefined;
  }

  /** True when it was still waiting. */
  remove(caller: string, item: Item): boolean {
    const lane = this.#lanes.get(caller);
    const at = lane?.indexOf(item) ?? -1;
    if (lane === undefined || at < 0) return false;
    lane.splice(at, 1);
    this.#size--;
    if (lane.length === 0) this.#lanes.delete(caller);
    return true;
  }
}
