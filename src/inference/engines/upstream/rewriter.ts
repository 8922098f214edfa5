// An upstream's server-sent events under our envelope. Bytes are handled as strings of one character each,
// so that what is cut in two by the network is whole again when joined. Most events are rewritten by putting
// another beginning and end to them; the rest are parsed.

import { fromBytes } from '../../../lib/byte-string.ts';
import {
  type Call,
  EngineError,
  type Task,
  toGivenPrompts,
  type Usage,
  type WireEvents,
} from '../../engine.ts';
import { createEventWriter, type LearnedEnvelope } from './envelope.ts';
import { toEventFailure, unavailable } from './failures.ts';
import { type GeneratedCount, toText } from './generated-text.ts';
import { toUsage } from './usage.ts';

export interface Rewriter {
  /** Takes the next bytes; gives the whole events that they complete, up to one that can't be served. */
  push(bytes: string): WireEvents;
  /** Nothing comes any more. Some servers leave the last event's blank line out. */
  end(): WireEvents;
  /** `[DONE]` came, or a failure: whatever follows is not for us. */
  isDone(): boolean;
  /** What an event said went wrong, or what is wrong with an event; null while all is well. */
  failure(): EngineError | null;
  /** Every choice that was seen has said how it ended. */
  hasFinished(): boolean;
  /** As the server says, or null when it said nothing. */
  usage(): Usage | null;
}

const maxEventBytes = 1024 * 1024;
const nothing = { rewritten: '', isHolding: false };
const tooLarge = () => unavailable('sent an event that is too large');

export function createRewriter(task: Task, call: Call, generated: GeneratedCount): Rewriter {
  const { include_usage, continuous_usage_stats } = task.body.stream_options ?? {};
  const includeUsage = include_usage === true;
  const showsUsage = includeUsage && continuous_usage_stats === true;
  const writer = createEventWriter(call.envelope, includeUsage);
  // With several choices it must be known which of them have ended, so their events are all parsed.
  const hasOneChoice = expectsOneChoice(task);
  const seen = new Set<number>();
  const finished = new Set<number>();
  let learned: LearnedEnvelope | null = null;
  let carry = '';
  let heldReturn = false;
  let isDone = false;
  let failure: EngineError | null = null;
  let usage: Usage | null = null;

  /** Any of the three line ends of the format, also when the pair is cut in two. */
  function unifyLines(bytes: string): string {
    const text = heldReturn ? `\r${bytes}` : bytes;
    heldReturn = text.endsWith('\r');
    return (heldReturn ? text.slice(0, -1) : text).replace(/\r\n?/g, '\n');
  }

  function push(bytes: string): WireEvents {
    if (isDone) return '';
    const fresh = heldReturn || bytes.includes('\r') ? unifyLines(bytes) : bytes;
    if (!fresh.includes('\n')) {
      // Joined without being copied until the event is whole.
      carry += fresh;
      if (carry.length > maxEventBytes) fail(tooLarge());
      return '';
    }
    const text = carry === '' ? fresh : carry + fresh;
    let searchFrom = Math.max(carry.length - 1, 0);
    let at = 0;
    let events = '';
    let holding = 0;
    // Looked for once and not after each event: there may be a great many of others.
    let isMixed = false;
    while (!isDone) {
      const alike = learned === null || isMixed ? null : dressAlike(learned, text, at);
      if (alike !== null) {
        events += alike.rewritten;
        holding += alike.count;
        at = alike.end;
        searchFrom = at;
      } else isMixed = learned !== null;
      const end = text.indexOf('\n\n', searchFrom);
      if (end === -1) break;
      const { rewritten, isHolding } = parseOrFail(text.slice(at, end));
      events += rewritten;
      if (isHolding) holding++;
      at = end + 2;
      searchFrom = at;
    }
    carry = at === 0 ? text : text.slice(at);
    if (carry.length > maxEventBytes) fail(tooLarge());
    generated.add(events, holding);
    return events;
  }

  function fail(error: EngineError): void {
    failure = error;
    isDone = true;
    carry = '';
  }

  function parseOrFail(eventText: string): { rewritten: string; isHolding: boolean } {
    try {
      return parse(eventText);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      fail(error);
      return nothing;
    }
  }

  /** Comments, usage, the end, errors, whatever is not like the events before it. */
  function parse(eventText: string): { rewritten: string; isHolding: boolean } {
    const data = readData(eventText);
    if (data === null) return nothing;
    if (data === '[DONE]') {
      isDone = true;
      return nothing;
    }
    const event = parseObject(data);
    if (event.error != null || event.object === 'error') throw toEventFailure(event, task);
    const counts = toUsage(event.usage);
    if (counts !== null) {
      usage = counts;
      call.onUsage?.(counts);
    }
    const given: unknown = event.choices;
    const choices = (Array.isArray(given) ? given : []).filter(isOpen);
    if (choices.length === 0) return nothing;
    const isPlain = choices.map(note).every(Boolean);
    event.choices = choices;
    const isHolding = toText(choices) !== '';
    // On one line and with nothing to report: the others may be like it.
    if (hasOneChoice && isPlain && counts === null && !eventText.includes('\n')) {
      learned = writer.learn(eventText, event);
    }
    const shown = showsUsage ? counts : null;
    return { rewritten: writer.write(event, includeUsage ? shown : undefined), isHolding };
  }

  /** Puts in what every choice must have. False when it lacked something, or is the end. */
  function note(choice: Members): boolean {
    const { index, finish_reason: finish } = choice;
    choice.index = indexOf(choice);
    seen.add(choice.index as number);
    // Some say in this way that it has not ended.
    if (finish === '') choice.finish_reason = null;
    const isWhole = task.kind !== 'chat' || isMembers(choice.delta);
    if (!isWhole) choice.delta = {};
    if (typeof choice.finish_reason === 'string') {
      finished.add(choice.index as number);
      // Whatever comes now is looked at.
      learned = null;
    }
    return isWhole && index === choice.index && typeof finish !== 'string';
  }

  /** Has not ended: what a server says of a choice after that is not for the client. */
  function isOpen(choice: unknown): choice is Members {
    return isMembers(choice) && !finished.has(indexOf(choice));
  }

  return {
    push,
    end() {
      if (isDone || (carry === '' && !heldReturn)) return '';
      heldReturn = false;
      const events = push('\n\n');
      // Half an event is told by the missing end of the stream, if that is missing.
      failure = null;
      return events;
    },
    isDone: () => isDone,
    failure: () => failure,
    hasFinished: () => finished.size > 0 && finished.size === seen.size,
    usage: () => usage,
  };
}

type Members = Record<string, unknown>;

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null;
}

function indexOf({ index }: { index?: unknown }): number {
  return typeof index === 'number' ? index : 0;
}

interface Dressed {
  rewritten: WireEvents;
  count: number;
  /** Where the first event begins that is not among them. */
  end: number;
}

/**
 * The events from here on that need nothing but another beginning and end, which is most of a stream at once;
 * null when the next is none, or when others are among them.
 */
function dressAlike(learned: LearnedEnvelope, text: string, at: number): Dressed | null {
  const { head, tail, seam, ourHead, ourTail, ourSeam } = learned;
  const last = text.lastIndexOf(seam);
  const lastAt = last < at ? at : last + tail.length + 2;
  const lastEnd = text.indexOf('\n\n', lastAt);
  // Comparing slices is several times as fast as `startsWith`.
  const isAlike =
    lastEnd - lastAt >= head.length + tail.length &&
    text.slice(lastEnd - tail.length, lastEnd) === tail;
  const end = isAlike ? lastEnd : lastAt - 2;
  if (end <= at || text.slice(at, at + head.length) !== head) return null;
  const pieces = text.slice(at + head.length, end - tail.length).split(seam);
  let count = 1;
  for (let next = text.indexOf('\n\n', at); next < end; next = text.indexOf('\n\n', next + 2))
    count++;
  // Something else, such as a comment, stands between two of them.
  if (count !== pieces.length) return null;
  return { rewritten: ourHead + pieces.join(ourSeam) + ourTail, count, end: end + 2 };
}

function expectsOneChoice({ kind, body }: Task): boolean {
  if ((body.n ?? 1) > 1) return false;
  return kind === 'chat' || toGivenPrompts(body).length === 1;
}

/** What the event's `data` lines hold, as bytes; null when that is nothing. */
function readData(eventText: string): string | null {
  if (eventText.startsWith('data: ') && !eventText.includes('\n'))
    return eventText.slice('data: '.length).trim() || null;
  const lines: string[] = [];
  for (const line of eventText.split('\n')) {
    // Older llama-servers send what went wrong as a field of its own.
    const field = /^(data|error)(?:: ?|$)/.exec(line);
    if (field !== null) lines.push(line.slice(field[0].length));
  }
  return lines.join('\n').trim() || null;
}

function parseObject(data: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(fromBytes(data));
    if (typeof parsed === 'object' && parsed !== null) return parsed as Record<string, unknown>;
  } catch {}
  throw unavailable('sent an event that is not JSON');
}
