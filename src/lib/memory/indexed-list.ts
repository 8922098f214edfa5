// Who is at work right now: many come and go, and now and then somebody looks at all of them. Not a Set: a
// Set's outgrown tables point to the newer ones, so that once one of them is old, the collector keeps
// everybody who was ever in it until it next cleans the whole heap. That took a tenth of the gateway's time.

export interface Member {
  /** Its seat, kept by the roster. */
  seat: number;
}

export const noSeat = -1;

export class Roster<One extends Member> {
  readonly #members: One[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(one: One): void {
    if (one.seat !== noSeat) return;
    one.seat = this.#members.length;
    this.#members.push(one);
  }

  /** The last one takes the empty seat. */
  delete(one: One): void {
    if (one.seat === noSeat) return;
    const last = this.#members.pop() as One;
    if (last !== one) {
      this.#members[one.seat] = last;
      last.seat = one.seat;
    }
    one.seat = noSeat;
  }

  /** As it is now, in no order; who leaves meanwhile is still told. */
  list(): One[] {
    return this.#members.slice();
  }
}
