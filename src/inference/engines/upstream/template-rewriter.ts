// Rewrites the events of one stream by template: an event that matches gets another head and tail, and is not parsed.

import type { Task, WireEvents } from '#inference/engine.ts';
import type { CallNumbers } from './call-numbers.ts';
import type { ChoiceProgress } from './choices.ts';
import {
  cacheEvent,
  type EventSample,
  type EventTemplate,
  type EventTemplates,
  learnTemplate,
  type ParsedEvent,
  skipHead,
} from './event-template.ts';
import { mayNameThought, namesThought, type StreamReasoning } from './reasoning.ts';

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
