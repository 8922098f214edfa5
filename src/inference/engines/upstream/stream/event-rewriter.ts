// Turns an upstream's server-sent events into Millrace's: splits the stream into events, rewrites most of them by
// template and parses the others. Works on byte strings, so that characters split across packets are whole again.

import type { Call, EngineError, Task } from '#inference/engine.ts';
import { CallNumbers, ChoiceProgress } from '#inference/engines/upstream/choices.ts';
import { orUnreadable, unavailable } from '#inference/engines/upstream/failures.ts';
import { StreamReasoning } from '#inference/engines/upstream/reasoning.ts';
import type { GeneratedCount, UsageCheck } from '#inference/engines/upstream/usage.ts';
import type { Usage, WireEvents } from '#inference/wire/response.ts';
import { EventParser, readData } from './event-parser.ts';
import {
  type EventTemplates,
  RewrittenEvents,
  TemplateRewriter,
  toOpening,
} from './event-template.ts';

const maxEventBytes = 1024 * 1024;

/** How the tokens of a stream are counted. */
export interface StreamCounting {
  readonly generated: GeneratedCount;
  readonly check: UsageCheck;
}

export class EventRewriter {
  /** `[DONE]` was received, or an event failed. The rest of the stream is ignored. */
  isDone = false;
  /** The error that an event reported, or that reading it caused; null if there is none. */
  failure: EngineError | null = null;
  readonly #opening: string;
  readonly #generated: GeneratedCount;
  readonly #choices: ChoiceProgress;
  readonly #output = new RewrittenEvents();
  readonly #parser: EventParser;
  readonly #template: TemplateRewriter;
  /** The start of an event whose end has not been received. */
  #carry = '';
  /** The last byte was a carriage return, which a line feed may follow. */
  #heldReturn = false;
  #receivedBytes = 0;

  constructor(
    task: Task,
    call: Call,
    { generated, check }: StreamCounting,
    templates: EventTemplates,
  ) {
    this.#opening = toOpening(call.envelope);
    this.#generated = generated;
    this.#choices = new ChoiceProgress(task);
    const state = {
      choices: this.#choices,
      reasoning: new StreamReasoning(task),
      calls: new CallNumbers(),
      output: this.#output,
    };
    this.#parser = new EventParser(task, call, check, state);
    this.#template = new TemplateRewriter(task, this.#opening, templates, state);
  }

  /** The usage the server reported; null if it reported none, or none that can be true. */
  get usage(): Usage | null {
    return this.#parser.usage;
  }

  /** True if every choice has finished. `isCut`: the stream was cut off. */
  hasFinished(isCut = false): boolean {
    return this.#choices.hasFinished(isCut);
  }

  /** Takes the next bytes. Returns the events they complete, up to one that can't be served. */
  push(bytes: string): WireEvents {
    if (this.isDone) return '';
    this.#receivedBytes += bytes.length;
    const fresh = this.#heldReturn || bytes.includes('\r') ? this.#unifyLines(bytes) : bytes;
    // Without a line end, V8 only links the two strings and does not copy them.
    if (fresh.includes('\n')) this.#read(this.#carry + fresh, Math.max(this.#carry.length - 1, 0));
    else this.#carry += fresh;
    if (this.#carry.length > maxEventBytes)
      this.#fail(unavailable('sent an event that is too large'));
    const { events, holding } = this.#output;
    this.#generated.add(events, holding);
    this.#output.clear();
    return events;
  }

  /** The stream has ended. Some servers leave out the blank line after the last event. */
  end(): WireEvents {
    if (this.isDone || (this.#carry === '' && !this.#heldReturn)) return '';
    this.#heldReturn = false;
    const events = this.push('\n\n');
    // Half an event is no error of its own: the missing finish_reason is.
    this.failure = null;
    return events;
  }

  /** Turns all three line ends of the format into line feeds, even if a pair is split across packets. */
  #unifyLines(bytes: string): string {
    const text = this.#heldReturn ? `\r${bytes}` : bytes;
    this.#heldReturn = text.endsWith('\r');
    return (this.#heldReturn ? text.slice(0, -1) : text).replace(/\r\n?/g, '\n');
  }

  #read(text: string, searchFrom: number): void {
    let at = 0;
    let end = text.indexOf('\n\n', searchFrom);
    while (end !== -1 && !this.isDone) {
      const isRewritten = this.#template.rewrite(text, at, end);
      if (!isRewritten) this.#parseOrFail(text.slice(at, end));
      at = end + 2;
      if (isRewritten) at = this.#template.rewriteRun(text, at);
      end = text.indexOf('\n\n', at);
    }
    this.#carry = this.isDone ? '' : text.slice(at);
  }

  #parseOrFail(eventText: string): void {
    try {
      this.#parse(eventText);
    } catch (error) {
      this.#fail(orUnreadable(error));
    }
  }

  #parse(eventText: string): void {
    const data = readData(eventText);
    if (data === '[DONE]') this.isDone = true;
    if (data === null || this.isDone) return;
    const parsed = this.#parser.parse(eventText, data, this.#receivedBytes);
    if (parsed === null) return;
    const { sample, ...event } = parsed;
    this.#output.add(this.#opening + event.rewritten, event.isHolding ? 1 : 0);
    if (sample !== null) this.#template.learn(sample, event);
  }

  #fail(error: EngineError): void {
    this.failure = error;
    this.isDone = true;
    this.#carry = '';
  }
}
