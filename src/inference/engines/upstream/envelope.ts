// What is the same in every event of a server's streams, learned from one event: the text before and after
// what its choice says. Events that have both need no parsing to get our envelope. Only the id and the time
// differ between streams, so that what one stream taught serves the next ones as well.

import type { Envelope } from '#inference/engine.ts';
import { toChunkOpening } from '#inference/wire.ts';
import { toBytes } from '#lib/memory/byte-string.ts';
import { isClosing, isOpening, quote, skipString } from '#lib/memory/json-text.ts';

/** How a server writes the events of a choice that goes on. Every character is one byte. */
export interface Shape {
  /** From the beginning of an event into its first choice, without the values of id and time. */
  readonly parts: readonly string[];
  /** What stands between them. */
  readonly holes: readonly ('text' | 'digits')[];
  /** From inside the choice to the end of the event. Says that the choice does not end there. */
  readonly tail: string;
  /** What we write instead; before it comes our own envelope. */
  readonly ourHead: string;
  readonly ourTail: string;
  /** Our tail is theirs, so that it can stay where it is. */
  readonly keepsTail: boolean;
  /** Events that were parsed before, by what follows the head. */
  readonly known: Map<string, KnownEvent>;
}

/** The first event of a stream, or its last: most servers say the same each time. */
export interface KnownEvent {
  /** What follows our opening. */
  readonly rewritten: string;
  /** Something was generated. */
  readonly isHolding: boolean;
  /** The choice ends with it. */
  readonly isLast: boolean;
}

/** What the servers behind one address have taught so far. */
export class Shapes {
  readonly #known: (Shape | null)[] = [null, null, null, null];

  /** The last that was learned from such streams. */
  get(kind: Envelope['kind'], includeUsage: boolean): Shape | null {
    return this.#known[toIndex(kind, includeUsage)] ?? null;
  }

  set(kind: Envelope['kind'], includeUsage: boolean, shape: Shape): void {
    this.#known[toIndex(kind, includeUsage)] = shape;
  }
}

const toIndex = (kind: Envelope['kind'], includeUsage: boolean) =>
  (kind === 'chat' ? 0 : 2) + (includeUsage ? 1 : 0);

const mostKnown = 32;
const mostKnownBytes = 512;

/** Those that begin with something generated are hardly ever the same. */
export function keepKnown({ known }: Shape, text: string, event: KnownEvent): void {
  const isCommon = event.isLast || !event.isHolding;
  if (isCommon && known.size < mostKnown && text.length <= mostKnownBytes)
    known.set(detach(text), event);
}

/** A part of a text keeps all of it in memory; this is for those that stay. */
const detach = (bytes: string) => Buffer.from(bytes, 'latin1').toString('latin1');

/** The beginning of every event we send of a stream; the rest follows with a comma. */
export const toOpening = (envelope: Envelope) => `data: ${toBytes(toChunkOpening(envelope))}`;

const notTheirs = new Set(['id', 'object', 'created', 'model', 'choices', 'usage']);

/** What a server says of itself. */
export function othersOf(event: Record<string, unknown>): Record<string, unknown> {
  const others: Record<string, unknown> = {};
  for (const name in event) if (!notTheirs.has(name)) others[name] = event[name];
  return others;
}

/** What follows our opening in a parsed event. `usage` undefined leaves it out. */
export function toRest(event: Record<string, unknown>, usage: unknown): string {
  const rest: Record<string, unknown> = { system_fingerprint: null, ...othersOf(event) };
  rest.choices = event.choices;
  if (usage !== undefined) rest.usage = usage;
  return `,${toBytes(JSON.stringify(rest)).slice(1)}\n\n`;
}

/** An event whose one choice goes on, as it came and as it was parsed. */
export interface Sample {
  readonly eventText: string;
  readonly event: Record<string, unknown>;
  /** Members of the choice that we write and this server does not. */
  readonly absent: readonly string[];
}

/** Null when its events can't be told apart by text alone. */
export function learnShape(given: Sample, includeUsage: boolean): Shape | null {
  const { event, absent } = given;
  const eventText = detach(given.eventText);
  const found = findChoices(eventText);
  if (found === null || !eventText.startsWith('[{', found.start)) return null;
  const choice = eventText.slice(found.start, found.end);
  const open = /"finish_reason"\s*:\s*null/.exec(choice);
  if (open === null || !choice.endsWith('}]')) return null;
  // What a server says before it is the same each time, or what it says after it.
  const isFirst = /^\[\{\s*(?:"index"\s*:\s*0\s*,\s*)?$/.test(choice.slice(0, open.index));
  const [start, end] = isFirst ? [open.index + open[0].length, choice.length - 2] : [2, open.index];
  const sample = toRest({ ...event, choices: [] }, includeUsage ? null : undefined);
  const at = sample.lastIndexOf('"choices":[]') + '"choices":'.length;
  const tail = eventText.slice(found.start + end);
  const added = absent.map((name) => `,"${name}":null`).join('');
  const ourTail = `${choice.slice(end, -2)}${added}}]${sample.slice(at + '[]'.length)}`;
  return {
    ...toParts(eventText.slice(0, found.start + start), event),
    tail,
    ourHead: sample.slice(0, at) + choice.slice(0, start),
    ourTail,
    keepsTail: ourTail === `${tail}\n\n`,
    known: new Map(),
  };
}

/** Cuts the values of id and time out of an event's beginning. */
function toParts(head: string, { id, created }: Record<string, unknown>) {
  const values: { at: number; length: number; hole: 'text' | 'digits' }[] = [];
  const idAt = typeof id === 'string' ? afterName(head, 'id') : -1;
  if (typeof id === 'string' && head.startsWith(`"${id}"`, idAt))
    values.push({ at: idAt + 1, length: id.length, hole: 'text' });
  const digits = Number.isSafeInteger(created) && Number(created) >= 0 ? String(created) : null;
  const createdAt = digits === null ? -1 : afterName(head, 'created');
  if (digits !== null && head.startsWith(digits, createdAt))
    values.push({ at: createdAt, length: digits.length, hole: 'digits' });
  values.sort((a, b) => a.at - b.at);
  const parts: string[] = [];
  let from = 0;
  for (const { at, length } of values) {
    parts.push(head.slice(from, at));
    from = at + length;
  }
  parts.push(head.slice(from));
  return { parts, holes: values.map(({ hole }) => hole) };
}

/** Where a member's value begins, if there is one member of that name; else after the end. */
function afterName(head: string, name: string): number {
  const [first, second] = head.matchAll(new RegExp(`"${name}"\\s*:\\s*`, 'g'));
  return first === undefined || second !== undefined ? head.length : first.index + first[0].length;
}

/** Where the head of such an event ends, if one begins here; else -1. */
export function skipHead({ parts, holes }: Shape, text: string, from: number): number {
  let at = from;
  for (let index = 0; index < parts.length; index++) {
    if (index > 0) at = holes[index - 1] === 'text' ? text.indexOf('"', at) : skipDigits(text, at);
    const part = parts[index] as string;
    // Comparing slices is several times as fast as `startsWith`.
    if (at === -1 || text.slice(at, at + part.length) !== part) return -1;
    at += part.length;
  }
  return at;
}

function skipDigits(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) >= 0x30 && text.charCodeAt(at) <= 0x39) at++;
  return at;
}

/** Where the value of the outermost `choices` stands in a text that is known to be an object in JSON. */
function findChoices(text: string): { start: number; end: number } | null {
  let depth = 0;
  let start = -1;
  for (let at = text.indexOf('{'); at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      const end = skipString(text, at);
      if (depth === 1 && start === -1 && text.slice(at, end) === '"choices"') {
        const separator = /^\s*:\s*/.exec(text.slice(end, end + 8))?.[0] ?? '';
        // Not a key but a value of that name.
        if (separator !== '') {
          start = end + separator.length;
          at = start - 1;
          continue;
        }
      }
      at = end - 1;
    } else if (isOpening(code)) depth++;
    else if (isClosing(code)) {
      depth--;
      if (start !== -1 && depth === 1) return { start, end: at + 1 };
    }
  }
  return null;
}
