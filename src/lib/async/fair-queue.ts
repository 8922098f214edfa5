// A waiting line with a level per priority and, on each level, one lane per caller, served in turns: a
// caller with a thousand requests delays a caller with one by one turn only, and what is less urgent waits
// longer but not for ever. Its length is bounded by whoever fills it.

interface Level<Item> {
  /** Lower goes first. */
  readonly priority: number;
  readonly lanes: Map<string, Item[]>;
  /** The turn in which it was last served, or came to be. */
  lastTurn: number;
}

/** One turn in so many goes to the level that has gone without one for longest. */
const turnsPerOldest = 8;

export class FairQueue<Item> {
  /** The most urgent first; none is empty. */
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

  /** Takes the first item that may go, from the lane whose turn it is; the lane goes to the back. */
  take(mayGo: (item: Item) => boolean): Item | undefined {
    for (const level of this.#inTurn()) {
      const item = takeFrom(level.lanes, mayGo);
      if (item === undefined) continue;
      level.lastTurn = ++this.#turn;
      this.#left(level);
      return item;
    }
    return undefined;
  }

  /** True when it was still waiting. */
  remove(caller: string, item: Item, priority = 0): boolean {
    const level = this.#levels.find((one) => one.priority === priority);
    const lane = level?.lanes.get(caller);
    const at = lane?.indexOf(item) ?? -1;
    if (level === undefined || lane === undefined || at < 0) return false;
    lane.splice(at, 1);
    if (lane.length === 0) level.lanes.delete(caller);
    this.#left(level);
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

  #inTurn(): readonly Level<Item>[] {
    const levels = this.#levels;
    if (levels.length < 2 || this.#turn % turnsPerOldest !== turnsPerOldest - 1) return levels;
    return levels.toSorted((a, b) => a.lastTurn - b.lastTurn);
  }

  #left(level: Level<Item>): void {
    this.#size--;
    if (level.lanes.size === 0) this.#levels.splice(this.#levels.indexOf(level), 1);
  }
}

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
