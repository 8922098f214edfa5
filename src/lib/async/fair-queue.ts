// A fair queue: one level per priority and, on each level, one lane per caller, served round-robin. A caller
// with a thousand items delays a caller with one item by a single turn, and low priorities are served less
// often but never starve. The code that pushes must bound the queue's length.

interface Level<Item> {
  /** Lower values are served first. */
  readonly priority: number;
  readonly lanes: Map<string, Item[]>;
  /** The turn in which the level was last served, or in which it was created. */
  lastTurn: number;
}

/** Every eighth turn goes to the level that has waited longest. */
const starvationTurns = 8;

/** Items of this priority go only if no other item may. They may starve. */
export const backgroundPriority = 1_000_000;

export class FairQueue<Item> {
  /** Sorted by priority, the most urgent first. Empty levels are removed. */
  readonly #levels: Level<Item>[] = [];
  #size = 0;
  #turn = 0;

  get size(): number {
    return this.#size;
  }

  push(caller: string, item: Item, priority = 0): void {
    const { lanes } = this.#levelOf(priority);
    const lane = lanes.get(caller);
    if (lane === undefined) lanes.set(caller, [item]);
    else lane.push(item);
    this.#size++;
  }

  /** Removes and returns the first item that may go, from the lane whose turn it is. That lane moves to the back. */
  take(mayGo: (item: Item) => boolean): Item | undefined {
    for (const level of this.#byTurn()) {
      const item = takeFrom(level.lanes, mayGo);
      if (item === undefined) continue;
      level.lastTurn = ++this.#turn;
      this.#removed(level);
      return item;
    }
    return undefined;
  }

  /** Returns false if the item was not in the queue. */
  remove(caller: string, item: Item, priority = 0): boolean {
    const level = this.#levels.find((one) => one.priority === priority);
    const lane = level?.lanes.get(caller);
    const at = lane?.indexOf(item) ?? -1;
    if (level === undefined || lane === undefined || at < 0) return false;
    lane.splice(at, 1);
    if (lane.length === 0) level.lanes.delete(caller);
    this.#removed(level);
    return true;
  }

  #levelOf(priority: number): Level<Item> {
    const at = this.#levels.findIndex((one) => one.priority >= priority);
    const found = this.#levels[at];
    if (found?.priority === priority) return found;
    const level = { priority, lanes: new Map<string, Item[]>(), lastTurn: this.#turn };
    this.#levels.splice(at < 0 ? this.#levels.length : at, 0, level);
    return level;
  }

  #byTurn(): readonly Level<Item>[] {
    const levels = this.#levels;
    if (levels.length < 2 || this.#turn % starvationTurns !== starvationTurns - 1) return levels;
    return levels.toSorted((a, b) => toRank(a) - toRank(b));
  }

  #removed(level: Level<Item>): void {
    this.#size--;
    if (level.lanes.size === 0) this.#levels.splice(this.#levels.indexOf(level), 1);
  }
}

const toRank = ({ priority, lastTurn }: Level<unknown>) =>
  priority === backgroundPriority ? Number.POSITIVE_INFINITY : lastTurn;

function takeFrom<Item>(
  lanes: Map<string, Item[]>,
  mayGo: (item: Item) => boolean,
): Item | undefined {
  for (const [caller, lane] of lanes) {
    const at = lane.findIndex(mayGo);
    if (at < 0) continue;
    const [item] = lane.splice(at, 1);
    lanes.delete(caller);
    if (lane.length > 0) lanes.set(caller, lane);
    return item;
  }
  return undefined;
}
