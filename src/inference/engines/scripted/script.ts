// The scripted upstream's responses: the same words for the same request, in OpenAI's format, with characters of one
// to four bytes among them.

import type { ChatRequest, CompletionRequest } from '#inference/schema.ts';

export type ScriptedBody = Partial<ChatRequest & CompletionRequest>;

const words = ['The', ' wheel', ' türnt', ' 水', ' and', ' the', ' 👩‍🔧', ' mill', ' grinds', '.'];

/** Length of the response. */
export interface ScriptLength {
  readonly words: number;
  readonly wordsPerEvent: number;
}

/** Each word is one token. */
export function writeScript(
  kind: 'chat' | 'completion',
  body: ScriptedBody,
  { words: length, wordsPerEvent }: ScriptLength,
) {
  const asked = (kind === 'chat' ? body.max_completion_tokens : null) ?? body.max_tokens ?? length;
  const given = countGiven(body, length);
  const tokens = Math.min(asked, length - given);
  const texts = Array.from({ length: tokens }, (_, index) => wordAt(given + index));
  const choices = (body.n ?? 1) * countPrompts(body.prompt);
  const finish = given + tokens < length ? 'length' : 'stop';
  const usage = {
    prompt_tokens: countWords(body.messages ?? body.prompt),
    completion_tokens: tokens * choices,
    total_tokens: countWords(body.messages ?? body.prompt) + tokens * choices,
    prompt_tokens_details: null,
  };
  /** A member that llama-server adds; every server adds some of its own. */
  const timings = { predicted_n: tokens };
  const isChat = kind === 'chat';
  const head = { id: isChat ? 'chatcmpl-scripted' : 'cmpl-scripted', created: 1_750_000_000 };
  const model = body.model ?? 'scripted';
  const indexes = Array.from({ length: choices }, (_, index) => index);

  function event(choice: object | null, more: object = {}): string {
    const object = isChat ? 'chat.completion.chunk' : 'text_completion';
    const all = choice === null ? [] : [choice];
    return `data: ${JSON.stringify({ ...head, object, model, choices: all, ...more })}\n\n`;
  }

  function part(index: number, text: string, finish_reason: string | null) {
    return isChat
      ? { index, delta: text === '' ? {} : { content: text }, logprobs: null, finish_reason }
      : { index, text, logprobs: null, finish_reason, stop_reason: null };
  }

  function whole(index: number) {
    const text = texts.join('');
    const end = { logprobs: null, finish_reason: finish };
    return isChat
      ? { index, message: { role: 'assistant', content: text, tool_calls: [] }, ...end }
      : { index, text, ...end, stop_reason: null };
  }

  function writePlain(): string {
    const object = isChat ? 'chat.completion' : 'text_completion';
    return JSON.stringify({ ...head, object, model, choices: indexes.map(whole), usage, timings });
  }

  function writeEvents(): string[] {
    const role = { role: 'assistant', content: '' };
    const begin = isChat
      ? indexes.map((index) => event({ index, delta: role, logprobs: null, finish_reason: null }))
      : [];
    const middle = inGroups(texts, wordsPerEvent).flatMap((group) =>
      indexes.map((index) => event(part(index, group.join(''), null))),
    );
    const ends = indexes.map((index) => event(part(index, '', finish)));
    const counts =
      body.stream_options?.include_usage === true ? [event(null, { usage, timings })] : [];
    return [...begin, ...middle, ...ends, ...counts, 'data: [DONE]\n\n'];
  }

  return { plain: writePlain(), events: writeEvents() };
}

function inGroups(texts: readonly string[], size: number): string[][] {
  const groups: string[][] = [];
  for (let at = 0; at < texts.length; at += size) groups.push(texts.slice(at, at + size));
  return groups;
}

const wordAt = (index: number) => words[index % words.length] as string;

/** Counts the words already generated, for continuations: the prompt ends with them, or they are the last message. */
function countGiven(body: ScriptedBody, length: number): number {
  const last = body.continue_final_message === true ? body.messages?.at(-1)?.content : body.prompt;
  if (typeof last !== 'string') return 0;
  const texts = Array.from({ length }, (_, index) => wordAt(index));
  for (let given = length; given > 0; given--) {
    if (last.endsWith(texts.slice(0, given).join(''))) return given;
  }
  return 0;
}

/** Words stand in for tokens. */
export function countWords(prompt: unknown): number {
  return JSON.stringify(prompt ?? '').match(/[\p{L}\p{N}]+/gu)?.length ?? 0;
}

function countPrompts(prompt: ScriptedBody['prompt']): number {
  return Array.isArray(prompt) && typeof prompt[0] !== 'number' ? prompt.length : 1;
}
