// Request bodies to prompt tokens: how many there are in all, and those that the model will read.

import { type Task, toGivenPrompts } from '#inference/engine.ts';
import { type Core, rejected } from '#inference/engines/local/child/runtime.ts';
import { fit, keepNewest, type WindowRules } from './context-window.ts';
import type { CompletionRequest } from '#inference/schema.ts';
import { type ChatPrompt, toChatPrompt } from './chat-template.ts';

export interface Prompt {
  /** What the model reads. */
  tokens: readonly number[];
  /** The whole prompt's tokens; those before `tokens` when a stand-in left some out. */
  whole: readonly number[];
  /** `whole` begins with a start token that the request did not write. */
  startAdded: boolean;
  /** Tokens that may be generated. */
  limit: number;
  /** As it was given, for an echo. */
  text(): string;
}

export async function toPrompts(core: Core, task: Task, contextWindow: number): Promise<Prompt[]> {
  const rules = { own: core.binding.window, asked: contextWindow, standIn: core.options.standIn };
  if (task.kind === 'chat') {
    const { body } = task;
    const maxTokens = body.max_completion_tokens ?? body.max_tokens ?? null;
    const prompt = toChatPrompt(body);
    const whole = await toChatTokens(core, prompt);
    const fitted = fit(rules, whole.length, maxTokens, 'messages');
    const tokens =
      whole.length <= fitted.readable || !rules.standIn
        ? whole
        : await keepNewest(prompt, fitted.readable, (shorter) => toChatTokens(core, shorter));
    return [
      { tokens, whole, limit: fitted.limit(tokens.length), startAdded: false, text: () => '' },
    ];
  }
  refuseSuffix(task.body);
  const prompts: Prompt[] = [];
  for (const given of toGivenPrompts(task.body))
    prompts.push(await toCompletionPrompt(core, given, rules, task.body.max_tokens ?? null));
  return prompts;
}

export async function countPromptTokens(core: Core, task: Task): Promise<number> {
  if (task.kind === 'chat') return (await toChatTokens(core, toChatPrompt(task.body))).length;
  let count = 0;
  for (const given of toGivenPrompts(task.body)) count += (await toTokens(core, given)).length;
  return count;
}

async function toCompletionPrompt(
  core: Core,
  given: string | number[],
  rules: WindowRules,
  maxTokens: number | null,
): Promise<Prompt> {
  const whole = await toTokens(core, given);
  if (whole.length === 0)
    throw rejected('The prompt is empty; give at least one token.', 'invalid_value', 'prompt');
  const fitted = fit(rules, whole.length, maxTokens, 'prompt');
  const tokens =
    whole.length <= fitted.readable || !rules.standIn
      ? whole
      : keepEnd(whole, fitted.readable, core.vocabulary.textStart);
  return {
    tokens,
    whole,
    startAdded: typeof given === 'string' && isAdded(core, whole[0], given),
    limit: fitted.limit(tokens.length),
    text: () => (typeof given === 'string' ? given : toText(core, given)),
  };
}

/** No model we serve has been tried with the tokens that filling in the middle needs. */
function refuseSuffix({ suffix }: CompletionRequest): void {
  if (suffix != null && suffix !== '')
    throw rejected(
      'This model can not fill in before a suffix.',
      'unsupported_parameter',
      'suffix',
    );
}

async function toTokens(core: Core, given: string | number[]): Promise<number[]> {
  const { vocabulary } = core;
  if (typeof given !== 'string') {
    const stranger = given.find((token) => token >= vocabulary.size);
    if (stranger === undefined) return given;
    throw rejected(
      `${stranger} is not a token of this model; its vocabulary has ${vocabulary.size} tokens.`,
      'invalid_value',
      'prompt',
    );
  }
  return withStart(vocabulary.textStart, await vocabulary.tokenize(given, true));
}

/** A character that stands in no text; it splits what must not be read as a control token. */
const seam = '\ufdd0';

async function toChatTokens(core: Core, prompt: ChatPrompt): Promise<number[]> {
  const controls = core.vocabulary.controlTexts;
  // What a user writes is text: "<|im_end|>" in a message, a tool or its arguments must not end it.
  const rendered = core.template.render({
    ...prompt,
    ...(controls !== null && {
      messages: openSeams(prompt.messages, controls, 'messages'),
      tools: openSeams(prompt.tools, controls, 'tools'),
    }),
  });
  const tokens: number[] = [];
  for (const part of rendered.split(seam))
    for (const token of await core.vocabulary.tokenize(part, true)) tokens.push(token);
  return withStart(core.vocabulary.bos, tokens);
}

/** Arguments and schemas are nested as their writer likes; a stack is not. */
const maxDepth = 512;

/** The same value with a seam in every control text, in the names of members too. */
function openSeams<Value>(value: Value, controls: RegExp, param: string, depth?: number): Value;
function openSeams(value: unknown, controls: RegExp, param: string, depth = 0): unknown {
  if (typeof value === 'string') return value.replaceAll(controls, openSeam);
  if (typeof value !== 'object' || value === null) return value;
  if (depth > maxDepth)
    throw rejected(`${param} may not be nested so deeply.`, 'invalid_value', param);
  const open = (item: unknown) => openSeams(item, controls, param, depth + 1);
  if (Array.isArray(value)) return value.map(open);
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [open(name), open(item)]));
}

function openSeam(control: string): string {
  return `${control.slice(0, 1)}${seam}${control.slice(1)}`;
}

/** Most templates write the start token themselves. */
function withStart(start: number | null, tokens: number[]): number[] {
  return start === null || tokens[0] === start ? tokens : [start, ...tokens];
}

function isAdded({ vocabulary }: Core, first: number | undefined, text: string): boolean {
  return (
    first !== undefined &&
    first === vocabulary.textStart &&
    !text.startsWith(vocabulary.name(first))
  );
}

/** The newest tokens; without its start token a model reads text as noise. */
function keepEnd(tokens: readonly number[], length: number, start: number | null): number[] {
  return start === null ? tokens.slice(-length) : [start, ...tokens.slice(1 - length)];
}

function toText(core: Core, tokens: readonly number[]): string {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const parts = tokens.map((token) =>
    decoder.decode(core.vocabulary.bytes(token), { stream: true }),
  );
  return parts.join('') + decoder.decode();
}
