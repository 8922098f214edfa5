// Which tool call each piece of a stream belongs to. Clients join pieces by their number, which some servers leave out,
// and others give to several calls.

import { isMembers, type Members, textOf } from '#lib/json-members.ts';

interface NumberedCall {
  readonly number: number;
  /** The number that the server gave; null if it gave none. */
  readonly given: number | null;
  id: string;
  name: string;
}

/** A list of calls that is not empty. */
const callPieces = /"tool_calls"\s*:\s*\[\s*\{/;

export class CallNumbers {
  /** One entry per choice. */
  readonly #choices: ChoiceCalls[] = [];
  #isChanged = false;

  /** True if the text of a choice may hold pieces that must be parsed to be numbered. */
  mustParse(choice: string): boolean {
    // Without the first quote, V8 finds it three times as fast: JSON has few of these letters, and many quotes.
    const at = choice.includes('tool_calls"') ? choice.search(callPieces) : -1;
    if (at === -1) return false;
    const isKnown = this.#choices.length > 0 && !this.#isChanged && choice.includes('"index"', at);
    return !isKnown || choice.includes('"name"', at);
  }

  /** Numbers the pieces of a delta. Returns true if any was changed. */
  apply(choice: number, pieces: unknown): boolean {
    if (!Array.isArray(pieces) || pieces.length === 0) return false;
    this.#choices[choice] ??= new ChoiceCalls();
    const isChanged = this.#choices[choice].apply(pieces.filter(isMembers));
    this.#isChanged ||= isChanged;
    return isChanged;
  }
}

class ChoiceCalls {
  /** By the number that the server gave. */
  readonly #byIndex = new Map<number, NumberedCall>();
  readonly #byId = new Map<string, NumberedCall>();
  readonly #used = new Set<number>();
  #last: NumberedCall | null = null;
  /** Larger than all numbers in use. */
  #next = 0;

  apply(pieces: readonly Members[]): boolean {
    return pieces.map((piece) => this.#number(piece)).includes(true);
  }

  #number(piece: Members): boolean {
    const id = textOf(piece.id);
    const name = isMembers(piece.function) ? textOf(piece.function.name) : '';
    const index = isNumber(piece.index) ? piece.index : null;
    const found = this.#find(index, id, name);
    // A piece with a name and another id begins a call, even if its number is that of an earlier one.
    const isOther = name !== '' && id !== '' && found?.id !== '' && found?.id !== id;
    const call = found === undefined || isOther ? this.#begin(index) : found;
    call.id ||= id;
    call.name ||= name;
    if (index !== null) this.#byIndex.set(index, call);
    if (id !== '') this.#byId.set(id, call);
    this.#last = call;
    const isChanged = piece.index !== call.number;
    piece.index = call.number;
    return isChanged;
  }

  /** A piece with neither a number nor the id of a call continues the last one, unless it begins another. */
  #find(index: number | null, id: string, name: string): NumberedCall | undefined {
    const known = this.#byId.get(id);
    if (index !== null) return known?.given === index ? known : this.#byIndex.get(index);
    const last = this.#last;
    if (known !== undefined || last === null) return known;
    const isOther = (name !== '' && last.name !== '') || (id !== '' && last.id !== '');
    return isOther ? undefined : last;
  }

  #begin(index: number | null): NumberedCall {
    const number = index === null || this.#used.has(index) ? this.#next : index;
    this.#used.add(number);
    this.#next = Math.max(this.#next, number + 1);
    return { number, given: index, id: '', name: '' };
  }
}

const maxNumber = 2 ** 31;

const isNumber = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) >= 0 && (value as number) < maxNumber;
