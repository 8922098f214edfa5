// Rewrites the events of a stream by template, which is learned from one of them: the text before
// and after what the choice says. Events that match get another head and tail, and are not parsed.
// Only the id and the time differ between streams, so a template learned from one stream serves the
// next ones too. Parsing every event instead, a stream of 50 chunks costs the engine four times the
// CPU if the chunks arrive together, and 1.2 to 1.7 times if each has a packet
// (`bench/upstream.ts`).

import type { Envelope, Task } from '#inference/engine.ts';
import type { CallNumbers, ChoiceProgress } from '#inference/engines/upstream/choices.ts';
import {
  mayNameThought,
  namesThought,
  type StreamReasoning,
} from '#inference/engines/upstream/reasoning.ts';
import { toChunkOpening } from '#inference/wire/envelope.ts';
import type { WireEvents } from '#inference/wire/response.ts';
import { toBytes } from '#lib/memory/byte-string.ts';
import { isClosing, isOpening, quote, skipString } from '#lib/memory/json-text.ts';

/** A template with the id and time of this stream filled in. */
interface StreamTemplate {
  readonly template: EventTemplate;
  readonly head: string;
  readonly ourHead: string;
  /** The text from the end of one event's content to the start of the next one's. */
  readonly seam: string;
}

export class TemplateRewriter {
  readonly #kind: Task['kind'];
  readonly #includeUsage: boolean;
  readonly #opening: string;
  readonly #templates: EventTemplates;
  readonly #choices: ChoiceProgress;
  readonly #reasoning: StreamReasoning;
  readonly #calls: CallNumbers;
  readonly #output: RewrittenEvents;
  readonly #isEnabled: boolean;
  /** Events that name a function are parsed, because their arguments or their number may have to be added. */
  readonly #mayCall: boolean;
  #current: StreamTemplate | null = null;

  constructor(
    { kind, body }: Task,
    opening: string,
    templates: EventTemplates,
    { choices, reasoning, calls, output }: StreamState,
  ) {
    this.#kind = kind;
    this.#includeUsage = body.stream_options?.include_usage === true;
    this.#opening = opening;
    this.#templates = templates;
    this.#choices = choices;
    this.#reasoning = reasoning;
    this.#calls = calls;
    this.#output = output;
    // With several choices it must be known which of them have finished, and the scores of a completion are converted.
    const isScored = kind === 'completion' && body.logprobs != null;
    this.#isEnabled = choices.expected === 1 && !isScored;
    this.#mayCall = kind === 'chat' && (body.tools ?? []).length > 0;
  }

  /** Rewrites the event between two positions. False if it must be parsed. */
  rewrite(text: string, at: number, end: number): boolean {
    // Whatever follows the end of the choice is parsed.
    if (!this.#isEnabled || this.#choices.hasAnyFinished) return false;
    const isFirst = this.#current === null || !this.#choices.hasStarted;
    const current = this.#current ?? this.#recognize(text, at, end);
    if (current === null) return false;
    const { head, ourHead, template } = current;
    const contentAt = at + head.length;
    const contentEnd = end - template.tail.length;
    // Comparing slices is several times faster than `startsWith` in V8.
    if (contentAt > end || text.slice(at, contentAt) !== head) return false;
    const continues = contentEnd >= contentAt && text.slice(contentEnd, end) === template.tail;
    // The first event may hold more than text, e.g. a role, so only a known one is rewritten.
    if (isFirst || !continues) return this.#repeat(template.known.get(text.slice(contentAt, end)));
    const content = text.slice(contentAt, contentEnd);
    if (this.#mayCall && this.#calls.mustParse(content)) return false;
    if (this.#reasoning.isPlain && namesThought(content)) return false;
    if (!this.#reasoning.isPlain) {
      const choice = this.#reasoning.rewrite(content);
      if (choice !== null) this.#output.add(ourHead + choice + template.ourTail, 1);
      return choice !== null;
    }
    if (template.keepsTail) this.#output.add(ourHead + text.slice(contentAt, end + 2), 1);
    else this.#output.add(ourHead + content + template.ourTail, 1);
    return true;
  }

  /** Rewrites matching events that are followed by another one, comparing one seam each. Returns where they end. */
  rewriteRun(text: string, from: number): number {
    if (this.#current === null || this.#mayCall || !this.#reasoning.isPlain) return from;
    if (this.#choices.hasAnyFinished) return from;
    const { head, ourHead, template, seam } = this.#current;
    const { tail, ourTail, keepsTail } = template;
    let at = from;
    let events = '';
    let count = 0;
    // One search for all events: most texts have no thought.
    if (text.slice(at, at + head.length) !== head || mayNameThought(text, at)) return at;
    for (;;) {
      const contentAt = at + head.length;
      const tailAt = text.indexOf('\n', contentAt) - tail.length;
      if (tailAt < contentAt || text.slice(tailAt, tailAt + seam.length) !== seam) break;
      at = tailAt + tail.length + 2;
      if (keepsTail) events += ourHead + text.slice(contentAt, at);
      else events += ourHead + text.slice(contentAt, tailAt) + ourTail;
      count++;
    }
    this.#output.add(events, count);
    return at;
  }

  /** Learns from an event that had to be parsed. */
  learn(sample: EventSample, parsed: ParsedEvent): void {
    if (!this.#isEnabled) return;
    const { eventText } = sample;
    const { head, template } = this.#current ?? { head: '', template: null };
    const content = eventText.startsWith(head) ? eventText.slice(head.length) : null;
    if (template !== null && content !== null) cacheEvent(template, content, parsed);
    // vLLM writes the first event of a stream unlike the others, so it must not replace a template.
    if (template !== null && (!parsed.isHolding || content?.endsWith(template.tail))) return;
    if (!parsed.isLast) this.#learnTemplate(sample);
  }

  #learnTemplate(sample: EventSample): void {
    const { eventText } = sample;
    const template = learnTemplate(sample, this.#includeUsage);
    this.#current = null;
    if (template === null) return;
    this.#templates.set(this.#kind, this.#includeUsage, template);
    this.#current = this.#fillIn(template, eventText.slice(0, skipHead(template, eventText, 0)));
  }

  /** Tries the template that an earlier stream left. */
  #recognize(text: string, at: number, end: number): StreamTemplate | null {
    const template = this.#templates.get(this.#kind, this.#includeUsage);
    const headEnd = template === null ? -1 : skipHead(template, text, at);
    if (template === null || headEnd === -1 || headEnd > end) return null;
    this.#current = this.#fillIn(template, text.slice(at, headEnd));
    return this.#current;
  }

  #fillIn(template: EventTemplate, head: string): StreamTemplate {
    const ourHead = this.#opening + template.ourHead;
    return { template, head, ourHead, seam: `${template.tail}\n\n${head}` };
  }

  #repeat(known: ParsedEvent | undefined): boolean {
    if (known === undefined || (known.isLast && this.#reasoning.isHolding)) return false;
    if (!this.#choices.hasStarted && !known.canOpen) return false;
    this.#output.add(this.#opening + known.rewritten, known.isHolding ? 1 : 0);
    this.#choices.note(0, known.isLast);
    return true;
  }
}

/** What the parser and the templates of a stream share. */
export interface StreamState {
  readonly choices: ChoiceProgress;
  readonly reasoning: StreamReasoning;
  readonly calls: CallNumbers;
  readonly output: RewrittenEvents;
}

export class RewrittenEvents {
  events: WireEvents = '';
  holding = 0;

  add(events: WireEvents, holding: number): void {
    this.events += events;
    this.holding += holding;
  }

  clear(): void {
    this.events = '';
    this.holding = 0;
  }
}

/** How a server writes an event whose choice continues. All texts are byte strings. */
export interface EventTemplate {
  /** The text from the start of the event into its first choice, without the values of `id` and `created`. */
  readonly parts: readonly string[];
  /** The kind of value between two parts. */
  readonly holes: readonly ('text' | 'digits')[];
  /** The text from inside the choice to the end of the event. It says that the choice is not finished. */
  readonly tail: string;
  /** Replaces the parts, after the opening. */
  readonly ourHead: string;
  /** Replaces the tail. */
  readonly ourTail: string;
  /** The tail is unchanged and can be copied with the text before it. */
  readonly keepsTail: boolean;
  /** Parsed events by the text after their head. */
  readonly known: Map<string, ParsedEvent>;
}

export interface ParsedEvent {
  /** The text that follows the opening. */
  readonly rewritten: string;
  /** The event holds generated text. */
  readonly isHolding: boolean;
  /** The event finishes its choice. */
  readonly isLast: boolean;
  /** The event can be the first of a stream: one of a chat has a role. */
  readonly canOpen: boolean;
}

/** The templates of one upstream, the last one learned for each kind of stream. */
export class EventTemplates {
  readonly #learned: (EventTemplate | null)[] = [null, null, null, null];

  get(kind: Envelope['kind'], includeUsage: boolean): EventTemplate | null {
    return this.#learned[toIndex(kind, includeUsage)] ?? null;
  }

  set(kind: Envelope['kind'], includeUsage: boolean, template: EventTemplate): void {
    this.#learned[toIndex(kind, includeUsage)] = template;
  }
}

const toIndex = (kind: Envelope['kind'], includeUsage: boolean) =>
  (kind === 'chat' ? 0 : 2) + (includeUsage ? 1 : 0);

const maxKnownEvents = 32;
const maxKnownBytes = 512;

/**
 * Caches the first or last event of a stream, which most servers write the same each time. Without
 * it, a stream of 50 chunks costs the engine 1.33 times the CPU if the chunks arrive together, and
 * 1.04 times if each has a packet (`bench/upstream.ts`).
 */
function cacheEvent({ known }: EventTemplate, text: string, event: ParsedEvent): void {
  const isCommon = event.isLast || !event.isHolding;
  if (isCommon && known.size < maxKnownEvents && text.length <= maxKnownBytes)
    known.set(detach(text), event);
}

/** Copies a slice, which would otherwise keep the whole text in memory. */
const detach = (bytes: string) => Buffer.from(bytes, 'latin1').toString('latin1');

/** An event whose only choice continues, as it was received and as it was parsed. */
export interface EventSample {
  readonly eventText: string;
  readonly event: Record<string, unknown>;
  /** Members of the choice that the contract requires and this server leaves out. */
  readonly absent: readonly string[];
}

/** Null if the server's events can't be recognised by their text. */
function learnTemplate(given: EventSample, includeUsage: boolean): EventTemplate | null {
  const { event, absent } = given;
  const eventText = detach(given.eventText);
  const found = findChoices(eventText);
  if (found === null || !eventText.startsWith('[{', found.start)) return null;
  const choice = eventText.slice(found.start, found.end);
  const open = /"finish_reason"\s*:\s*null/.exec(choice);
  if (open === null || !choice.endsWith('}]')) return null;
  // Either the text before `finish_reason` is the same in every event, or the text after it.
  const isFirst = /^\[\{\s*(?:"index"\s*:\s*0\s*,\s*)?$/.test(choice.slice(0, open.index));
  const [start, end] = isFirst ? [open.index + open[0].length, choice.length - 2] : [2, open.index];
  const sample = toEventRest({ ...event, choices: [] }, includeUsage ? null : undefined);
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

/** Cuts the values of `id` and `created` out of the start of an event. */
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

/** Where the value of the only member of that name starts; the end of the text if there is none, or several. */
function afterName(head: string, name: string): number {
  const [first, second] = head.matchAll(new RegExp(`"${name}"\\s*:\\s*`, 'g'));
  return first === undefined || second !== undefined ? head.length : first.index + first[0].length;
}

/** Returns where the head of a matching event ends, or -1 if the event does not match. */
function skipHead({ parts, holes }: EventTemplate, text: string, from: number): number {
  let at = from;
  for (let index = 0; index < parts.length; index++) {
    if (index > 0) at = holes[index - 1] === 'text' ? text.indexOf('"', at) : skipDigits(text, at);
    const part = parts[index] as string;
    // Comparing slices is several times faster than `startsWith` in V8.
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

/** Finds the value of the outermost `choices` in a text that is known to hold a JSON object. */
function findChoices(text: string): { start: number; end: number } | null {
  let depth = 0;
  let start = -1;
  for (let at = text.indexOf('{'); at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      const end = skipString(text, at);
      if (depth === 1 && start === -1 && text.slice(at, end) === '"choices"') {
        const separator = /^\s*:\s*/.exec(text.slice(end, end + 8))?.[0] ?? '';
        // Otherwise it is a string value, not a key.
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

/** The start of every event of a stream, as a byte string. The rest follows with a comma. */
export const toOpening = (envelope: Envelope) => `data: ${toBytes(toChunkOpening(envelope))}`;

const ownMembers = new Set(['id', 'object', 'created', 'model', 'choices', 'usage']);

/** The members that the server added to the format. */
export function toAddedMembers(event: Record<string, unknown>): Record<string, unknown> {
  const added: Record<string, unknown> = {};
  for (const name in event) if (!ownMembers.has(name)) added[name] = event[name];
  return added;
}

/** What follows the opening in a parsed event, as a byte string. An undefined `usage` is left out. */
export function toEventRest(event: Record<string, unknown>, usage: unknown): string {
  const rest: Record<string, unknown> = { system_fingerprint: null, ...toAddedMembers(event) };
  rest.choices = event.choices;
  if (usage !== undefined) rest.usage = usage;
  return `,${toBytes(JSON.stringify(rest)).slice(1)}\n\n`;
}
