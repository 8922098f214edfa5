// Parses the events that no template matches: the first of a stream, its end, usage, errors, comments.

import type { Call, EngineError, Task } from '#inference/engine.ts';
import {
  type CallNumbers,
  type ChoiceProgress,
  fillAbsent,
  fillDelta,
  formScores,
  indexOf,
  lengthOf,
  nameStop,
  openDelta,
  toAbsent,
} from '#inference/engines/upstream/choices.ts';
import {
  brokenOff,
  isBrokenOff,
  toEventFailure,
  unreadable,
} from '#inference/engines/upstream/failures.ts';
import { isEmptyDelta, type StreamReasoning } from '#inference/engines/upstream/reasoning.ts';
import { Tally, toText, toUsage, type UsageCheck } from '#inference/engines/upstream/usage.ts';
import type { Usage } from '#inference/wire/response.ts';
import { isMembers, type Members } from '#lib/json-members.ts';
import { fromBytes } from '#lib/memory/byte-string.ts';
import {
  type EventSample,
  type ParsedEvent,
  type StreamState,
  toAddedMembers,
  toEventRest,
} from './event-template.ts';

/** Maximum bytes of all events without choices whose members are reported. */
const maxReportedBytes = 16 * 1024;

/** A parsed event, and the sample that a template can be learned from; null if other events will not be like it. */
export interface EventWithSample extends ParsedEvent {
  readonly sample: EventSample | null;
}

export class EventParser {
  /** The usage the server reported; null until it reports any, or if it can't be true. */
  usage: Usage | null = null;
  readonly #task: Task;
  readonly #call: Call;
  readonly #check: UsageCheck;
  readonly #choices: ChoiceProgress;
  readonly #reasoning: StreamReasoning;
  readonly #calls: CallNumbers;
  /** Choices of the current event of which nothing is left, because their text may be a tag. */
  readonly #held: Members[] = [];
  readonly #includeUsage: boolean;
  readonly #showsUsage: boolean;
  readonly #isScored: boolean;
  /** Where the next scores of each choice start in its text, in code points. */
  readonly #offsets: number[] = [];
  /** Null with one choice, whose usage is that of the response. */
  readonly #tally: Tally | null;
  #reportedBytes = 0;

  constructor(
    task: Task,
    call: Call,
    check: UsageCheck,
    { choices, reasoning, calls }: Omit<StreamState, 'output'>,
  ) {
    const { include_usage, continuous_usage_stats } = task.body.stream_options ?? {};
    this.#task = task;
    this.#call = call;
    this.#check = check;
    this.#choices = choices;
    this.#reasoning = reasoning;
    this.#calls = calls;
    this.#includeUsage = include_usage === true;
    this.#showsUsage = this.#includeUsage && continuous_usage_stats === true;
    this.#isScored = task.kind === 'completion' && task.body.logprobs != null;
    this.#tally = choices.expected === 1 ? null : new Tally(task.body.n ?? 1);
  }

  /**
   * Null if the event is not for the client. `receivedBytes` is the size of the response so far. Throws the
   * EngineError that the event reports.
   */
  parse(eventText: string, data: string, receivedBytes: number): EventWithSample | null {
    const event = parseObject(data);
    // llama-server starts a stream of several prompts with `data: null`.
    if (event === null) return null;
    if (event.error != null || event.object === 'error') throw toEventFailure(event, this.#task);
    const all: unknown[] = Array.isArray(event.choices) ? event.choices : [];
    const counts = this.#readUsage(event.usage, all[0], receivedBytes);
    const choices = all.filter((one) => this.#isOpen(one));
    if (all.length === 0) this.#reportMembers(event, data.length);
    if (choices.length === 0) return null;
    this.#held.length = 0;
    const absent = toAbsent(this.#task.kind, choices[0]);
    const isPlain = choices.map((choice) => this.#complete(choice)).every(Boolean);
    if (this.#held.length === choices.length) return null;
    event.choices = choices.filter((choice) => !this.#held.includes(choice));
    const shown = this.#showsUsage ? counts : null;
    const isSample = isPlain && counts === null && choices.length === 1 && choices[0]?.index === 0;
    return {
      rewritten: toEventRest(event, this.#includeUsage ? shown : undefined),
      isHolding: toText(choices) !== '',
      isLast: this.#choices.hasAnyFinished,
      canOpen: this.#task.kind !== 'chat' || hasRole(choices[0]),
      sample: isSample && !eventText.includes('\n') ? { eventText, event, absent } : null,
    };
  }

  #reportMembers(event: Members, bytes: number): void {
    this.#reportedBytes += bytes;
    if (this.#reportedBytes <= maxReportedBytes) this.#call.onRest?.(toAddedMembers(event));
  }

  #readUsage(given: unknown, choice: unknown, receivedBytes: number): Usage | null {
    const counts = toUsage(given);
    const index = isMembers(choice) ? indexOf(choice) : null;
    // Ollama sends zeros with every choice until the end.
    if (counts === null || (index !== null && counts.total_tokens === 0)) return null;
    const all = this.#tally?.add(counts, index) ?? counts;
    this.usage = this.#check.accept(all, receivedBytes);
    if (this.usage !== null) this.#call.onUsage?.(this.usage);
    return this.usage;
  }

  /** Adds the members that every choice must have. False if the choice was changed. */
  #complete(choice: Members): boolean {
    const { index, finish_reason: finish } = choice;
    choice.index = indexOf(choice);
    // Some servers send an empty finish_reason for a choice that continues.
    if (finish === '') choice.finish_reason = null;
    if (isBrokenOff(finish)) throw brokenOff();
    const hasDelta = this.#task.kind !== 'chat' || isMembers(choice.delta);
    if (!hasDelta) choice.delta = {};
    const isFilled = this.#fill(choice);
    this.#choices.note(choice.index as number, typeof choice.finish_reason === 'string');
    return hasDelta && !isFilled && index === choice.index && finish !== '';
  }

  /** Returns true if a member was added or converted, besides those in `absent`. */
  #fill(choice: Members): boolean {
    fillAbsent(this.#task.kind, choice);
    const index = choice.index as number;
    if (this.#task.kind === 'chat') {
      const isOpened = !this.#choices.isSeen(index) && openDelta(choice);
      const delta = choice.delta as Members;
      const isLast = typeof choice.finish_reason === 'string';
      const isRewritten = this.#reasoning.apply(index, delta, isLast);
      if (isRewritten && !isLast && !('role' in delta) && isEmptyDelta(delta))
        this.#held.push(choice);
      const isNumbered = this.#calls.apply(index, delta.tool_calls);
      return fillDelta(delta) || isNumbered || isRewritten || isOpened;
    }
    const isNamed = nameStop(this.#task, choice);
    if (!this.#isScored) return isNamed;
    const offset = this.#offsets[index] ?? 0;
    formScores(choice, offset);
    this.#offsets[index] = offset + lengthOf(typeof choice.text === 'string' ? choice.text : '');
    return true;
  }

  /** Anything that follows the end of a choice is dropped, and so are choices that were not asked for. */
  #isOpen(choice: unknown): choice is Members {
    if (!isMembers(choice)) return false;
    const index = indexOf(choice);
    return this.#choices.isExpected(index) && !this.#choices.isFinished(index);
  }
}

const hasRole = (choice: Members | undefined): boolean =>
  isMembers(choice?.delta) && choice.delta.role === 'assistant';

/** `data` may follow a byte order mark. Older llama-servers send errors in an `error` field. */
const fieldName = /^(?:\xef\xbb\xbf)?(?:data|error)(?:: ?|$)/;

/** The content of an event's data lines as a byte string; null if there is none. */
export function readData(eventText: string): string | null {
  if (eventText.startsWith('data: ') && !eventText.includes('\n'))
    return eventText.slice('data: '.length).trim() || null;
  const lines: string[] = [];
  for (const line of eventText.split('\n')) {
    const field = fieldName.exec(line);
    if (field !== null) lines.push(line.slice(field[0].length));
  }
  return lines.join('\n').trim() || null;
}

function parseObject(data: string): Members | null {
  try {
    const parsed: unknown = JSON.parse(fromBytes(data));
    if (typeof parsed === 'object') return parsed as Members | null;
  } catch {}
  throw notJson();
}

const notJson = (): EngineError => unreadable('sent an event that is not JSON');
