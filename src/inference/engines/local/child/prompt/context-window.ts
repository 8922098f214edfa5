// Fits a prompt into the model's window. A model that serves its own requests refuses a prompt that does not fit. A
// stand-in keeps the window of the model it stands in for, and reads as much of the prompt as its own window holds.

import { contextLengthExceeded } from '#inference/engines/local/child/errors.ts';
import type { ChatPrompt, TemplateMessage } from './chat-template.ts';

export interface WindowRules {
  /** Tokens that a sequence of this model can hold. */
  own: number;
  /** The window of the requested model. */
  requested: number;
  standIn: boolean;
}

export interface Fit {
  /** Maximum prompt tokens to read. */
  maxPromptTokens: number;
  /** Maximum tokens to generate after reading `promptTokens`. */
  toMaxTokens(promptTokens: number): number;
}

/** Throws EngineError `rejected` if prompt and completion exceed the window. */
export function fit(
  rules: WindowRules,
  promptTokens: number,
  maxTokens: number | null,
  param: 'messages' | 'prompt',
): Fit {
  const window = rules.standIn ? rules.requested : Math.min(rules.own, rules.requested);
  if (promptTokens + (maxTokens ?? 1) > window)
    throw contextLengthExceeded(window, promptTokens, maxTokens, param);
  const wanted = Math.min(maxTokens ?? window, window - promptTokens);
  const reserved = Math.min(wanted, Math.floor(rules.own / 4));
  return {
    maxPromptTokens: rules.own - reserved,
    toMaxTokens: (read) => Math.min(wanted, rules.own - read),
  };
}

/**
 * Returns the tokens of the messages that fit: the system messages at the start and as many of the newest turns as
 * there is room for, beginning with a user message. If not even the last message fits, its start is cut off.
 */
export async function keepNewest(
  prompt: ChatPrompt,
  maxTokens: number,
  toTokens: (prompt: ChatPrompt) => Promise<number[]>,
): Promise<number[]> {
  const turnsAt = prompt.messages.findIndex(
    ({ role }) => role !== 'system' && role !== 'developer',
  );
  const system = turnsAt < 0 ? prompt.messages.slice(0, -1) : prompt.messages.slice(0, turnsAt);
  const turns = prompt.messages.slice(system.length);

  async function attempt(messages: TemplateMessage[]): Promise<number[] | null> {
    const chars = messages.reduce((sum, { content }) => sum + content.length, 0);
    if (chars > maxTokens * maxCharsPerToken) return null;
    const tokens = await toTokens({ ...prompt, messages });
    return tokens.length <= maxTokens ? tokens : null;
  }

  let best: number[] | null = null;
  for (const start of startsOf(turns)) {
    const tokens = await attempt([...system, ...turns.slice(start)]);
    if (tokens === null) break;
    best = tokens;
  }
  return (
    best ??
    (await cutToFit(
      { ...prompt, messages: [...system, ...turns.slice(-1)] },
      system.length,
      maxTokens,
      toTokens,
    ))
  );
}

/** More characters than a token has on average in any text. */
const maxCharsPerToken = 24;
const maxStarts = 64;

/** The indexes where the kept turns may begin, newest first. At most `maxStarts`. */
function startsOf(turns: readonly TemplateMessage[]): number[] {
  const users = turns.flatMap(({ role }, at) => (role === 'user' ? [at] : []));
  return (users.length > 0 ? users : [...turns.keys()]).reverse().slice(0, maxStarts);
}

/** Shortens the ends of the first `systemCount` messages and the starts of the others until they fit. */
async function cutToFit(
  prompt: ChatPrompt,
  systemCount: number,
  maxTokens: number,
  toTokens: (prompt: ChatPrompt) => Promise<number[]>,
): Promise<number[]> {
  let systemChars = maxTokens * 2;
  let lastChars = maxTokens * 4;
  let tokens: number[] = [];
  for (let round = 0; round < 8; round++) {
    const messages = prompt.messages.map((message, at) => ({
      ...message,
      content:
        at < systemCount
          ? message.content.slice(0, systemChars)
          : message.content.slice(-lastChars),
    }));
    tokens = await toTokens({ ...prompt, messages });
    if (tokens.length <= maxTokens) return tokens;
    const shrink = Math.min(0.9, (maxTokens / tokens.length) * 0.9);
    systemChars = Math.floor(systemChars * shrink);
    lastChars = Math.max(1, Math.floor(lastChars * shrink));
  }
  // Tools alone can fill a window. Then only the newest tokens are kept, and the first one: models were never trained
  // on text without it.
  return [...tokens.slice(0, 1), ...tokens.slice(1 - maxTokens)];
}
