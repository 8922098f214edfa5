// An upstream's server-sent events under our envelope. Bytes are handled as strings of one character each,
// so that what is cut in two by the network is whole again when joined. Most events are rewritten by putting
// another beginning and end to them; the rest are parsed.

import {
  type Call,
  countPrompts,
  type EngineError,
  type Task,
  type Usage,
  type WireEvents,
} from '#inference/engine.ts';
import { fromBytes } from '#lib/memory/byte-string.ts';
import {
  fillAbsent,
  fillDelta,
  isMembers,
  type Members,
  nameStop,
  toAbsent,
} from './choice-members.ts';
import { formScores, lengthOf } from './completion-logprobs.ts';
import {
  type KnownEvent,
  keepKnown,
  learnShape,
  othersOf,
  type Sample,
  type Shape,
  type Shapes,
  skipHead,
  toOpening,
  toRest,
} from './envelope.ts';
import { brokenOff, isBrokenOff, orUnreadable, toEventFailure, unavailable } from './failures.ts';
import { type GeneratedCount, toText } from './generated-text.ts';
import { Tally, toUsage } from './usage.ts';
import type { UsageCheck } from './usage-check.ts';

const maxEventBytes = 1024 * 1024;
/** Of all events without choices. */
const maxRestBytes = 16 * 1024;
const tooLarge = () => unavailable('sent an event that is too large');

/** How the events of this stream look that need no parsing. */
interface Alike {
  readonly shape: Shape;
  readonly head: string;
  readonly ourHead: string;
  /** From what one says to what the next says. */
  readonly seam: string;
}

/** What the tokens of a stream are counted with. */
export interface StreamCounting {
  readonly generated: GeneratedCount;
  readonly check: UsageCheck;
}

/** One is made for every stream, hence a class: its methods are made once. */
export class Rewriter {
  /** `[DONE]` came, or a failure: whatever follows is not for us. */
  isDone = false;
  /** What an event said went wrong, or what is wrong with an event; null while all is well. */
  failure: EngineError | null = null;
  /** As the server says, or null when it said nothing, or nothing that can be true. */
  usage: Usage | null = null;
  readonly #task: Task;
  readonly #call: Call;
  readonly #generated: GeneratedCount;
  readonly #check: UsageCheck;
  readonly #shapes: Shapes;
  readonly #opening: string;
  readonly #includeUsage: boolean;
  readonly #showsUsage: boolean;
  readonly #expected: number;
  /** With several choices it must be known which of them have ended, so their events are all parsed. */
  readonly #hasOneChoice: boolean;
  /** Events of a text with scores are all parsed. */
  readonly #isScored: boolean;
  /** Where each choice's next scores stand in its text. */
  readonly #offsets: number[] = [];
  /** Events that name a function are parsed. */
  readonly #mayCall: boolean;
  #alike: Alike | null = null;
  #carry = '';
  #receivedBytes = 0;
  #heldReturn = false;
  #restBytes = 0;
  /** Indexes of choices. */
  readonly #seen: number[] = [];
  readonly #finished: number[] = [];
  /** Null with one choice, whose counts are those of all. */
  readonly #tally: Tally | null;
  /** What the bytes at hand give: events, and how many of them hold something generated. */
  #events = '';
  #holding = 0;

  constructor(task: Task, call: Call, { generated, check }: StreamCounting, shapes: Shapes) {
    const { include_usage, continuous_usage_stats } = task.body.stream_options ?? {};
    this.#task = task;
    this.#call = call;
    this.#generated = generated;
    this.#check = check;
    this.#shapes = shapes;
    this.#opening = toOpening(call.envelope);
    this.#includeUsage = include_usage === true;
    this.#showsUsage = this.#includeUsage && continuous_usage_stats === true;
    this.#expected = (task.body.n ?? 1) * countPrompts(task);
    this.#hasOneChoice = this.#expected === 1;
    this.#tally = this.#hasOneChoice ? null : new Tally(task.body.n ?? 1);
    this.#isScored = task.kind === 'completion' && task.body.logprobs != null;
    this.#mayCall = task.kind === 'chat' && (task.body.tools ?? []).length > 0;
  }

  /**
   * Every choice that was seen has said how it ended. A server may give fewer than were asked for, but who was cut
   * off may have meant to give the others.
   */
  hasFinished(isCut = false): boolean {
    const least = isCut ? this.#expected : 1;
    return this.#finished.length >= least && this.#finished.length === this.#seen.length;
  }

  /** Takes the next bytes; gives the whole events that they complete, up to one that can't be served. */
  push(bytes: string): WireEvents {
    if (this.isDone) return '';
    this.#receivedBytes += bytes.length;
    const fresh = this.#heldReturn || bytes.includes('\r') ? this.#unifyLines(bytes) : bytes;
    // Joined without being copied until the event is whole.
    if (fresh.includes('\n')) this.#read(this.#carry + fresh, Math.max(this.#carry.length - 1, 0));
    else this.#carry += fresh;
    if (this.#carry.length > maxEventBytes) this.#fail(tooLarge());
    const events = this.#events;
    this.#generated.add(events, this.#holding);
    this.#events = '';
    this.#holding = 0;
    return events;
  }

  /** Nothing comes any more. Some servers leave the last event's blank line out. */
  end(): WireEvents {
    if (this.isDone || (this.#carry === '' && !this.#heldReturn)) return '';
    this.#heldReturn = false;
    const events = this.push('\n\n');
    // Half an event is told by the missing end of the stream, if that is missing.
    this.failure = null;
    return events;
  }

  /** Any of the three line ends of the format, also when the pair is cut in two. */
  #unifyLines(bytes: string): string {
    const text = this.#heldReturn ? `\r${bytes}` : bytes;
    this.#heldReturn = text.endsWith('\r');
    return (this.#heldReturn ? text.slice(0, -1) : text).replace(/\r\n?/g, '\n');
  }

  #read(text: string, searchFrom: number): void {
    let at = 0;
    let end = text.indexOf('\n\n', searchFrom);
    while (end !== -1 && !this.isDone) {
      const isDressed = this.#dress(text, at, end);
      if (!isDressed) this.#parseOrFail(text.slice(at, end));
      at = end + 2;
      if (isDressed) at = this.#dressRun(text, at);
      end = text.indexOf('\n\n', at);
    }
    this.#carry = this.isDone ? '' : text.slice(at);
  }

  /** An event that needs nothing but another beginning and end. False when it must be parsed. */
  #dress(text: string, at: number, end: number): boolean {
    const before = this.#alike;
    const alike = before ?? this.#recognize(text, at, end);
    if (alike === null) return false;
    const { head, ourHead, shape } = alike;
    const bodyAt = at + head.length;
    const bodyEnd = end - shape.tail.length;
    // Comparing slices is several times as fast as `startsWith`.
    if (bodyAt > end || text.slice(at, bodyAt) !== head) return false;
    const goesOn = bodyEnd >= bodyAt && text.slice(bodyEnd, end) === shape.tail;
    if (before === null || !goesOn) return this.#repeat(shape.known.get(text.slice(bodyAt, end)));
    if (this.#mayCall && text.slice(bodyAt, bodyEnd).includes('"name"')) return false;
    if (shape.keepsTail) this.#events += ourHead + text.slice(bodyAt, end + 2);
    else this.#events += ourHead + text.slice(bodyAt, bodyEnd) + shape.ourTail;
    this.#holding++;
    return true;
  }

  /** Events that are alike and followed by another such one, with one look at each; tells where they end. */
  #dressRun(text: string, from: number): number {
    if (this.#alike === null || this.#mayCall) return from;
    const { head, ourHead, shape, seam } = this.#alike;
    const { tail, ourTail } = shape;
    let at = from;
    let events = '';
    let count = 0;
    if (text.slice(at, at + head.length) !== head) return at;
    for (;;) {
      const bodyAt = at + head.length;
      const tailAt = text.indexOf('\n', bodyAt) - tail.length;
      if (tailAt < bodyAt || text.slice(tailAt, tailAt + seam.length) !== seam) break;
      at = tailAt + tail.length + 2;
      if (shape.keepsTail) events += ourHead + text.slice(bodyAt, at);
      else events += ourHead + text.slice(bodyAt, tailAt) + ourTail;
      count++;
    }
    this.#events += events;
    this.#holding += count;
    return at;
  }

  /** Whether this stream looks like earlier ones of its server. */
  #recognize(text: string, at: number, end: number): Alike | null {
    // Whatever comes after the end of a choice is looked at.
    if (!this.#hasOneChoice || this.#isScored || this.#finished.length > 0) return null;
    const shape = this.#shapes.get(this.#task.kind, this.#includeUsage);
    const headEnd = shape === null ? -1 : skipHead(shape, text, at);
    if (shape === null || headEnd === -1 || headEnd > end) return null;
    this.#alike = this.#toAlike(shape, text.slice(at, headEnd));
    return this.#alike;
  }

  #toAlike(shape: Shape, head: string): Alike {
    const ourHead = this.#opening + shape.ourHead;
    return { shape, head, ourHead, seam: `${shape.tail}\n\n${head}` };
  }

  /** The beginning or the end of a choice that is like that of another. */
  #repeat(known: KnownEvent | undefined): boolean {
    if (known === undefined) return false;
    this.#events += this.#opening + known.rewritten;
    if (known.isHolding) this.#holding++;
    this.#note(0, known.isLast);
    return true;
  }

  #fail(error: EngineError): void {
    this.failure = error;
    this.isDone = true;
    this.#carry = '';
  }

  #parseOrFail(eventText: string): void {
    try {
      this.#parse(eventText);
    } catch (error) {
      this.#fail(orUnreadable(error));
    }
  }

  /** Comments, usage, the end, errors, whatever is not like the events before it. */
  #parse(eventText: string): void {
    const data = readData(eventText);
    if (data === null) return;
    if (data === '[DONE]') {
      this.isDone = true;
      return;
    }
    const event = parseObject(data);
    // llama-server begins a stream of several prompts with these.
    if (event === null) return;
    if (event.error != null || event.object === 'error') throw toEventFailure(event, this.#task);
    const given: unknown = event.choices;
    const all: unknown[] = Array.isArray(given) ? given : [];
    const counts = this.#takeUsage(event.usage, all[0]);
    const choices = all.filter((one) => this.#isOpen(one));
    if (all.length === 0) this.#tellRest(event, data.length);
    if (choices.length === 0) return;
    const alike = this.#alike;
    const absent = toAbsent(this.#task.kind, choices[0]);
    const isPlain = choices.map((choice) => this.#complete(choice)).every(Boolean);
    event.choices = choices;
    const isHolding = toText(choices) !== '';
    const shown = this.#showsUsage ? counts : null;
    const rewritten = toRest(event, this.#includeUsage ? shown : undefined);
    this.#events += this.#opening + rewritten;
    if (isHolding) this.#holding++;
    const isAlone = this.#hasOneChoice && choices.length === 1 && choices[0]?.index === 0;
    // On one line and with nothing to report: others may be like it.
    if (isAlone && isPlain && !this.#isScored && counts === null && !eventText.includes('\n'))
      this.#learn(
        alike,
        { eventText, event, absent },
        { rewritten, isHolding, isLast: this.#finished.length > 0 },
      );
  }

  #tellRest(event: Members, bytes: number): void {
    this.#restBytes += bytes;
    if (this.#restBytes <= maxRestBytes) this.#call.onRest?.(othersOf(event));
  }

  #takeUsage(given: unknown, choice: unknown): Usage | null {
    const counts = toUsage(given);
    const index = isMembers(choice) ? indexOf(choice) : null;
    // Ollama says so with every choice until it knows.
    if (counts === null || (index !== null && counts.total_tokens === 0)) return null;
    const all = this.#tally?.add(counts, index) ?? counts;
    this.usage = this.#check.accept(all, this.#receivedBytes);
    if (this.usage !== null) this.#call.onUsage?.(this.usage);
    return this.usage;
  }

  #learn(alike: Alike | null, sample: Sample, parsed: KnownEvent): void {
    const { eventText } = sample;
    const { head, shape } = alike ?? { head: '', shape: null };
    const body = eventText.startsWith(head) ? eventText.slice(head.length) : null;
    if (shape !== null && body !== null) keepKnown(shape, body, parsed);
    // The event that opens a stream may look unlike the others (vLLM): it teaches only who knows nothing yet.
    if (shape !== null && (!parsed.isHolding || body?.endsWith(shape.tail))) return;
    if (parsed.isLast) return;
    this.#learnShape(sample);
  }

  #learnShape(sample: Sample): void {
    const { eventText } = sample;
    const shape = learnShape(sample, this.#includeUsage);
    this.#alike = null;
    if (shape === null) return;
    this.#shapes.set(this.#task.kind, this.#includeUsage, shape);
    this.#alike = this.#toAlike(shape, eventText.slice(0, skipHead(shape, eventText, 0)));
  }

  /** Puts in what every choice must have. False when it lacked something. */
  #complete(choice: Members): boolean {
    const { index, finish_reason: finish } = choice;
    choice.index = indexOf(choice);
    // Some say in this way that it has not ended.
    if (finish === '') choice.finish_reason = null;
    if (isBrokenOff(finish)) throw brokenOff();
    const isWhole = this.#task.kind !== 'chat' || isMembers(choice.delta);
    if (!isWhole) choice.delta = {};
    const isFilled = this.#fill(choice);
    this.#note(choice.index as number, typeof choice.finish_reason === 'string');
    return isWhole && !isFilled && index === choice.index && finish !== '';
  }

  /** What our contract promises. Tells whether something was there in another form. */
  #fill(choice: Members): boolean {
    fillAbsent(this.#task.kind, choice);
    if (this.#task.kind === 'chat') return fillDelta(choice.delta as Members);
    const isNamed = nameStop(this.#task, choice);
    if (!this.#isScored) return isNamed;
    const index = choice.index as number;
    const offset = this.#offsets[index] ?? 0;
    formScores(choice, offset);
    this.#offsets[index] = offset + lengthOf(typeof choice.text === 'string' ? choice.text : '');
    return true;
  }

  #note(index: number, hasEnded: boolean): void {
    if (!this.#seen.includes(index)) this.#seen.push(index);
    if (!hasEnded) return;
    this.#finished.push(index);
    // Whatever comes now is looked at.
    this.#alike = null;
  }

  /** Has not ended: what a server says of a choice after that is not for the client. */
  #isOpen(choice: unknown): choice is Members {
    return isMembers(choice) && !this.#finished.includes(indexOf(choice));
  }
}

function indexOf({ index }: { index?: unknown }): number {
  return typeof index === 'number' ? index : 0;
}

/** The first may follow a byte order mark. Older llama-servers send what went wrong as a field of its own. */
const opensField = /^(?:\xef\xbb\xbf)?(?:data|error)(?:: ?|$)/;

/** What the event's `data` lines hold, as bytes; null when that is nothing. */
function readData(eventText: string): string | null {
  if (eventText.startsWith('data: ') && !eventText.includes('\n'))
    return eventText.slice('data: '.length).trim() || null;
  const lines: string[] = [];
  for (const line of eventText.split('\n')) {
    const field = opensField.exec(line);
    if (field !== null) lines.push(line.slice(field[0].length));
  }
  return lines.join('\n').trim() || null;
}

function parseObject(data: string): Members | null {
  try {
    const parsed: unknown = JSON.parse(fromBytes(data));
    if (typeof parsed === 'object') return parsed as Members | null;
  } catch {}
  throw unavailable('sent an event that is not JSON');
}
