// Continues a response on another backend after its stream broke: what the client was sent, which
// requests allow it, what the next backend is sent, and how its stream is joined to what the client
// already has. Pure: the attempt decides which backend to use and when.

import { findConstraint } from '#inference/constraint.ts';
import type { Task } from '#inference/engine.ts';
import { heldLength } from '#inference/held-length.ts';
import type { CatalogEntry } from '#inference/models/catalog.ts';
import type { ChatMessage, ChatRequest, CompletionRequest } from '#inference/schema.ts';
import { parseEvents, toWireEvents, type WireEvent } from '#inference/wire/envelope.ts';
import {
  type ChatChoiceDelta,
  type CompletionChoice,
  type EngineChunk,
  type Usage,
  type WireEvents,
  withCounts,
} from '#inference/wire/response.ts';

/** Whether the rest of the response can be generated from its text so far. */
export function canContinue({ continueStreams }: CatalogEntry, { kind, body }: Task): boolean {
  if (continueStreams === false || (body.n ?? 1) > 1) return false;
  if (body.stream_options?.continuous_usage_stats === true) return false;
  // A response of a fixed form can't be continued from the middle.
  if (findConstraint(body) !== null || (body as { format?: unknown }).format != null) return false;
  return kind === 'chat' ? canContinueChat(body) : canContinueCompletion(body);
}

function canContinueChat(body: ChatRequest): boolean {
  if (body.logprobs === true) return false;
  if ((body.tools ?? []).length > 0 && body.tool_choice !== 'none') return false;
  return body.add_generation_prompt !== false || body.continue_final_message === true;
}

function canContinueCompletion(body: CompletionRequest): boolean {
  const { prompt, suffix, logprobs, prompt_logprobs } = body;
  if (typeof prompt !== 'string' || (suffix ?? '') !== '') return false;
  return logprobs == null && prompt_logprobs == null;
}

export interface Continuation {
  task: Task;
  /** Whitespace at the end of the text sent so far. The next backend may repeat it, and then it is not sent again. */
  blanks: string;
}

/**
 * Returns the task for the next backend; `complete` if the client has everything except the finish reason; null if
 * the response can't be continued from here.
 */
export function toContinuation(
  task: Task,
  sent: string,
  generatedTokens: number,
): Continuation | 'complete' | null {
  const generated = toGenerated(task, sent);
  const blanks = generated.slice(generated.trimEnd().length);
  if (sent === blanks) return { task, blanks };
  // Models generate a space together with the word after it, so the next backend must generate the space.
  const text = sent.slice(0, sent.length - spacesOf(blanks).length);
  // A stop string may have begun before the seam, where the next backend could not recognise it.
  if (heldLength(sent, [task.body.stop ?? []].flat()) > 0) return null;
  const limits = toLimits(task, generatedTokens);
  if (limits === null) return 'complete';
  if (task.kind === 'completion') {
    const prompt = toPrompt(task.body, text);
    if (prompt === null) return null;
    const body = { ...task.body, ...limits, prompt, echo: false };
    return { task: { kind: 'completion', body }, blanks };
  }
  const messages = toMessages(task.body, text);
  const continuesMessage = { continue_final_message: true, add_generation_prompt: false };
  const body = { ...task.body, ...limits, ...continuesMessage, messages };
  // The next backend continues an answer, so the template opens no thought.
  const thinkTags = task.thinkTags === 'keep' ? 'keep' : 'split';
  return { task: { kind: 'chat', body, thinkTags }, blanks };
}

/** The whitespace of the last line. */
const spacesOf = (blanks: string) => blanks.slice(blanks.lastIndexOf('\n') + 1);

/** Removes the prompt, with which the sent text begins if `echo` is set. */
export function toGenerated({ kind, body }: Task, sent: string): string {
  const isEcho = kind === 'completion' && body.echo === true && typeof body.prompt === 'string';
  return isEcho ? sent.slice(body.prompt.length) : sent;
}

/** Returns null if nothing is left to generate. */
function toLimits({ kind, body }: Task, generated: number) {
  const left = (limit: number) => Math.max(0, limit - generated);
  const limits: Partial<Record<'max_tokens' | 'max_completion_tokens' | 'min_tokens', number>> = {};
  if (body.max_tokens != null) limits.max_tokens = left(body.max_tokens);
  if (kind === 'chat' && body.max_completion_tokens != null) {
    limits.max_completion_tokens = left(body.max_completion_tokens);
    // `max_completion_tokens` takes precedence over `max_tokens`, which may be used up.
    if (body.max_tokens != null) limits.max_tokens = limits.max_completion_tokens;
  }
  if (body.min_tokens != null) limits.min_tokens = left(body.min_tokens);
  return (limits.max_completion_tokens ?? limits.max_tokens) === 0 ? null : limits;
}

/** With `echo`, the sent text holds the prompt. Returns null if it holds only a part of it. */
function toPrompt({ prompt, echo }: CompletionRequest, text: string): string | null {
  if (typeof prompt !== 'string') return null;
  if (echo !== true) return prompt + text;
  return text.startsWith(prompt) ? text : null;
}

function toMessages(body: ChatRequest, text: string): ChatMessage[] {
  const last = body.messages.at(-1);
  if (body.continue_final_message !== true || last === undefined) {
    return [...body.messages, { role: 'assistant', content: text }];
  }
  const content = Array.isArray(last.content)
    ? [...last.content, { type: 'text', text }]
    : (last.content ?? '') + text;
  return [...body.messages.slice(0, -1), { ...last, content }];
}

/**
 * Adds up usage across backends. The client sent one request, so its prompt counts once; all generated tokens
 * count.
 */
export function addUsage(before: Usage | null, since: Usage): Usage {
  if (before === null) return since;
  // A server that died may not have reported its usage. The next one counts the text so far as prompt.
  const untold = Math.max(0, since.prompt_tokens - before.completion_tokens);
  const completion = before.completion_tokens + since.completion_tokens;
  return withCounts(before, before.prompt_tokens || untold, completion);
}

/** Yields a continued stream without the opening and the whitespace that the client has already received. */
export async function* afterSeam(
  items: AsyncIterable<EngineChunk | WireEvents>,
  blanks: string,
): AsyncGenerator<EngineChunk | WireEvents> {
  const withoutOpening = createSeam(blanks);
  let isOpening = true;
  for await (const item of items) {
    if (!isOpening) yield item;
    else if (typeof item !== 'string') {
      const choices = item.choices.flatMap(withoutOpening);
      isOpening = choices.length === 0;
      yield { ...item, choices };
    } else {
      for (const event of parseEvents(item)) {
        const choices = (event.choices ?? []).flatMap(withoutOpening);
        if (choices.length === 0) continue;
        isOpening = false;
        yield toWireEvents({ ...event, choices });
      }
    }
  }
}

type Choice = NonNullable<WireEvent['choices']>[number];

/** Filters the choices of a continued stream until one of them contains something new. */
function createSeam(blanks: string): (choice: Choice) => Choice[] {
  let left: string | null = null;

  function cut(text: string): string {
    if (text === '') return '';
    // Templates may trim the end of a message. Then all the whitespace is repeated, otherwise only that of the last
    // line.
    left ??= text[0] === blanks[0] ? blanks : spacesOf(blanks);
    let same = 0;
    while (same < text.length && text[same] === left[same]) same++;
    // Once the text differs, everything after it is new.
    left = same === text.length ? left.slice(same) : '';
    return text.slice(same);
  }

  return (choice) => {
    const isLast = choice.finish_reason != null;
    if ('text' in choice) {
      const text = cut(choice.text);
      return text === '' && !isLast ? [] : [{ ...choice, text }];
    }
    const { role: _, ...delta } = choice.delta;
    if (typeof delta.content === 'string') delta.content = cut(delta.content);
    return (delta.content ?? '') === '' && !isLast ? [] : [{ ...choice, delta }];
  };
}

/** The final chunk of a response whose last token was sent, but not its finish reason. */
export function toLengthEnd(kind: Task['kind']): EngineChunk {
  const end = { index: 0, logprobs: null, finish_reason: 'length' } as const;
  const choice: ChatChoiceDelta | Choice =
    kind === 'chat' ? { ...end, delta: {} } : { ...end, text: '', stop_reason: null };
  return { choices: [choice], usage: null };
}

/** Maximum bytes of unparsed events, which take about forty times the space of their text. */
const maxUnreadBytes = 16 * 1024;
const maxTextLength = 1024 * 1024;
const maxPieces = 64;

/**
 * What a client has been sent of its response. To keep this cheap, wire events are parsed only when
 * they take up too much space or the transcript is read. Parsing each event at once, a stream of 50
 * chunks costs the server 1.59 times the CPU if the chunks arrive together, and 1.09 times if each
 * has a packet (`bench/cpu.ts`). A class, because every stream creates one.
 */
export class Transcript {
  readonly #kind: Task['kind'];
  #unread: WireEvents = '';
  /** The text before the unread events. */
  readonly #pieces: string[] = [];
  #length = 0;
  #isFinished = false;
  #isLost = false;

  constructor(kind: Task['kind']) {
    this.#kind = kind;
  }

  add(item: EngineChunk | WireEvents): void {
    if (this.#isLost) return;
    if (typeof item === 'string') {
      this.#unread += item;
      if (this.#unread.length > maxUnreadBytes) this.#readUnread();
    } else {
      this.#readUnread();
      for (const choice of item.choices) this.#see(choice);
    }
    if (this.#pieces.length >= maxPieces) this.#join(0);
  }

  /** Null if the response contains more than text, or more text than is kept. */
  read(): { text: string; isFinished: boolean } | null {
    this.#readUnread();
    return this.#isLost ? null : { text: this.#pieces.join(''), isFinished: this.#isFinished };
  }

  #readUnread(): void {
    if (this.#unread === '') return;
    const from = this.#pieces.length;
    for (const { choices = [] } of parseEvents(this.#unread))
      for (const choice of choices) this.#see(choice);
    this.#unread = '';
    this.#join(from);
  }

  #see(choice: ChatChoiceDelta | CompletionChoice): void {
    if (this.#isLost) return;
    const isChat = this.#kind === 'chat';
    const piece = isChat ? toChatText(choice as ChatChoiceDelta) : toPlainText(choice);
    if (choice.finish_reason != null) this.#isFinished = true;
    if (piece === null || this.#length + piece.length > maxTextLength) {
      this.#isLost = true;
      this.#pieces.length = 0;
    } else {
      this.#pieces.push(piece);
      this.#length += piece.length;
    }
  }

  /** Copies pieces into one: each may be a slice that keeps all of the parsed text in memory. */
  #join(from: number): void {
    this.#pieces.push(this.#pieces.splice(from).join(''));
  }
}

/** Returns null for a delta with more than text: a tool call, reasoning, or any other member. */
function toChatText({ delta }: ChatChoiceDelta): string | null {
  for (const [name, value] of Object.entries(delta ?? {})) {
    if (name !== 'role' && name !== 'content' && isSomething(value)) return null;
  }
  return asText(delta?.content ?? '');
}

const toPlainText = (choice: ChatChoiceDelta | CompletionChoice) =>
  'text' in choice ? asText(choice.text) : null;

/** Some servers send a list of parts. */
const asText = (content: unknown) => (typeof content === 'string' ? content : null);

const isSomething = (value: unknown) =>
  value != null && value !== '' && !(Array.isArray(value) && value.length === 0);
