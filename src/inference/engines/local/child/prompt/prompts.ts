// Turns request bodies into prompt tokens: all of them, and those that the model reads.

import { type Task, toGivenPrompts } from '#inference/engine.ts';
import {
  emptyPrompt,
  nestedTooDeep,
  suffixUnsupported,
} from '#inference/engines/local/child/errors.ts';
import type { ModelRuntime } from '#inference/engines/local/child/runtime.ts';
import { refuseUnknown } from '#inference/engines/local/child/vocabulary.ts';
import type { CompletionRequest } from '#inference/schema.ts';
import { type ChatPrompt, opensThought, toChatPrompt } from './chat-template.ts';
import { fit, keepNewest, type WindowRules } from './context-window.ts';

export interface Prompt {
  /** The tokens that the model reads. */
  tokens: readonly number[];
  /** All tokens of the prompt. A stand-in may leave out some of them in `tokens`. */
  whole: readonly number[];
  /** True if `whole` begins with a start token that the request did not write. */
  startAdded: boolean;
  /** Maximum tokens to generate. */
  maxTokens: number;
  /** The template ended the prompt with the opening tag of a thought. */
  opensThought: boolean;
  /** The prompt's text, for an echo. Empty for a chat. */
  text(): string;
}

export async function toPrompts(
  runtime: ModelRuntime,
  task: Task,
  contextWindow: number,
): Promise<Prompt[]> {
  const rules = {
    own: runtime.binding.window,
    requested: contextWindow,
    standIn: runtime.options.standIn,
  };
  if (task.kind === 'chat') {
    const { body } = task;
    const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? null;
    const prompt = toChatPrompt(body);
    const { tokens: whole, ...chat } = await readChat(runtime, prompt);
    const fitted = fit(rules, whole.length, maxTokens, 'messages');
    const tokens =
      whole.length <= fitted.maxPromptTokens || !rules.standIn
        ? whole
        : await keepNewest(prompt, fitted.maxPromptTokens, (shorter) =>
            toChatTokens(runtime, shorter),
          );
    return [
      {
        tokens,
        whole,
        maxTokens: fitted.toMaxTokens(tokens.length),
        startAdded: false,
        opensThought: chat.opensThought,
        text: () => '',
      },
    ];
  }
  refuseSuffix(task.body);
  const prompts: Prompt[] = [];
  for (const given of toGivenPrompts(task.body))
    prompts.push(await toCompletionPrompt(runtime, given, rules, task.body.max_tokens ?? null));
  return prompts;
}

export async function countPromptTokens(runtime: ModelRuntime, task: Task): Promise<number> {
  if (task.kind === 'chat') return (await toChatTokens(runtime, toChatPrompt(task.body))).length;
  let count = 0;
  for (const given of toGivenPrompts(task.body)) count += (await toTokens(runtime, given)).length;
  return count;
}

async function toCompletionPrompt(
  runtime: ModelRuntime,
  given: string | number[],
  rules: WindowRules,
  maxTokens: number | null,
): Promise<Prompt> {
  const whole = await toTokens(runtime, given);
  if (whole.length === 0) throw emptyPrompt();
  const fitted = fit(rules, whole.length, maxTokens, 'prompt');
  const tokens =
    whole.length <= fitted.maxPromptTokens || !rules.standIn
      ? whole
      : keepEnd(whole, fitted.maxPromptTokens, runtime.vocabulary.textStart);
  return {
    tokens,
    whole,
    opensThought: false,
    startAdded: typeof given === 'string' && isAdded(runtime, whole[0], given),
    maxTokens: fitted.toMaxTokens(tokens.length),
    text: () => (typeof given === 'string' ? given : toText(runtime, given)),
  };
}

/** Filling in the middle needs special tokens, which no supported model has been tried with. */
function refuseSuffix({ suffix }: CompletionRequest): void {
  if (suffix != null && suffix !== '') throw suffixUnsupported();
}

async function toTokens(runtime: ModelRuntime, given: string | number[]): Promise<number[]> {
  const { vocabulary } = runtime;
  if (typeof given === 'string')
    return withStart(vocabulary.textStart, await vocabulary.tokenize(given, true));
  refuseUnknown(given, vocabulary, 'prompt');
  return given;
}

/** A noncharacter, which no text contains. It splits text that must not be read as a control token. */
const seam = '\ufdd0';

export const toChatTokens = async (runtime: ModelRuntime, prompt: ChatPrompt): Promise<number[]> =>
  (await readChat(runtime, prompt)).tokens;

async function readChat(runtime: ModelRuntime, prompt: ChatPrompt) {
  const controls = runtime.vocabulary.controlTexts;
  // A client's text stays text: "<|im_end|>" in a message, a tool or its arguments must not end the message.
  const rendered = runtime.template.render({
    ...prompt,
    ...(controls !== null && {
      messages: insertSeams(prompt.messages, controls, 'messages'),
      tools: insertSeams(prompt.tools, controls, 'tools'),
      variables: insertSeams(prompt.variables, controls, 'chat_template_kwargs'),
    }),
  });
  const tokens: number[] = [];
  for (const part of rendered.split(seam))
    for (const token of await runtime.vocabulary.tokenize(part, true)) tokens.push(token);
  return {
    tokens: withStart(runtime.vocabulary.bos, tokens),
    opensThought: opensThought(rendered),
  };
}

/** Bounds the recursion: a client may nest arguments and schemas to any depth. */
const maxDepth = 512;

/** Returns the value with a seam in the text of every control token, in the names of members too. */
function insertSeams<Value>(value: Value, controls: RegExp, param: string, depth?: number): Value;
function insertSeams(value: unknown, controls: RegExp, param: string, depth = 0): unknown {
  if (typeof value === 'string') return value.replaceAll(controls, insertSeam);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > maxDepth) throw nestedTooDeep(param, maxDepth);
  const insert = (item: unknown) => insertSeams(item, controls, param, depth + 1);
  if (Array.isArray(value)) return value.map(insert);
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [insert(name), insert(item)]),
  );
}

function insertSeam(control: string): string {
  return `${control.slice(0, 1)}${seam}${control.slice(1)}`;
}

/** Adds the start token, unless the template has written it. */
export function withStart(start: number | null, tokens: number[]): number[] {
  return start === null || tokens[0] === start ? tokens : [start, ...tokens];
}

function isAdded({ vocabulary }: ModelRuntime, first: number | undefined, text: string): boolean {
  return (
    first !== undefined &&
    first === vocabulary.textStart &&
    !text.startsWith(vocabulary.name(first))
  );
}

/** Keeps the last tokens, and the start token: without it a model reads text as noise. */
function keepEnd(tokens: readonly number[], length: number, start: number | null): number[] {
  return start === null ? tokens.slice(-length) : [start, ...tokens.slice(1 - length)];
}

function toText(runtime: ModelRuntime, tokens: readonly number[]): string {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const parts = tokens.map((token) =>
    decoder.decode(runtime.vocabulary.bytes(token), { stream: true }),
  );
  return parts.join('') + decoder.decode();
}
