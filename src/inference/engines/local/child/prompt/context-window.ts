// What fits into the model's window. A model that answers for itself refuses what does not fit; a
// stand-in keeps the window of the model it stands for and reads what its own smaller one can hold.

import { EngineError } from '#inference/engine.ts';
import type {
  ChatPrompt,
  TemplateMessage,
} from './chat-template.ts';

/** Of a sequence where nobody chose another: a larger one takes memory that few requests use. */
export const defaultContextSize = 8192;

export interface WindowRules {
  /** Tokens a sequence can hold. */
  own: number;
  /** The window of the model that was asked for. */
  asked: number;
  standIn: boolean;
}

export interface Fit {
  /** Prompt tokens that may be read. */
  readable: number;
  /** Tokens that may be generated after reading `read` prompt tokens. */
  limit(read: number): number;
}

/** Throws EngineError `rejected` when prompt and completion are over the window. */
export function fit(
  rules: WindowRules,
  promptTokens: number,
  maxTokens: number | null,
  param: 'messages' | 'prompt',
): Fit {
  const window = rules.standIn ? rules.asked : Math.min(rules.own, rules.asked);
  if (promptTokens + (maxTokens ?? 1) > window)
    throw new EngineError(
      'rejected',
      `The context window is ${window} tokens; the prompt has ${promptTokens} and ${
        maxTokens === null ? 'at least 1 is' : `${maxTokens} are`
      } needed for the completion. Shorten the prompt or ask for fewer tokens.`,
      { code: 'context_length_exceeded', param },
    );
  const wanted = Math.min(maxTokens ?? window, window - promptTokens);
  const room = Math.min(wanted, Math.floor(rules.own / 4));
  return {
    readable: rules.own - room,
    limit: (read) => Math.min(wanted, rules.own - read),
  };
}

/**
 * Chooses the messages that fit: the system messages at the start and as many of the newest turns as
 * there is room for, beginning with a user's. The last message is cut from its start if it must be.
 */
export async function keepNewest(
  prompt: ChatPrompt,
  budget: number,
  toTokens: (prompt: ChatPrompt) => Promise<number[]>,
): Promise<number[]> {
  const turnsAt = prompt.messages.findIndex(
    ({ role }) => role !== 'system' && role !== 'developer',
  );
  const system = turnsAt < 0 ? prompt.messages.slice(0, -1) : prompt.messages.slice(0, turnsAt);
  const turns = prompt.messages.slice(system.length);

  async function attempt(messages: TemplateMessage[]): Promise<number[] | null> {
    const chars = messages.reduce((sum, { content }) => sum + content.length, 0);
    if (chars > budget * maxCharsPerToken) return null;
    const tokens = await toTokens({ ...prompt, messages });
    return tokens.length <= budget ? tokens : null;
  }

  let best: number[] | null = null;
  for (const start of startsOf(turns)) {
    const tokens = await attempt([...system, ...turns.slice(start)]);
    if (tokens === null) break;
    best = tokens;
  }
  return best ?? (await cutToFit(system, turns.slice(-1), prompt, budget, toTokens));
}

/** Longer than any run of text that one token stands for on average. */
const maxCharsPerToken = 24;
const maxStarts = 64;

/** Where the kept turns may begin, newest first; a bounded number of them. */
function startsOf(turns: readonly TemplateMessage[]): number[] {
  const users = turns.flatMap(({ role }, at) => (role === 'user' ? [at] : []));
  return (users.length > 0 ? users : [...turns.keys()]).reverse().slice(0, maxStarts);
}

async function cutToFit(
  system: readonly TemplateMessage[],
  last: readonly TemplateMessage[],
  prompt: ChatPrompt,
  budget: number,
  toTokens: (prompt: ChatPrompt) => Promise<number[]>,
): Promise<number[]> {
  let systemChars = budget * 2;
  let lastChars = budget * 4;
  let tokens: number[] = [];
  for (let round = 0; round < 8; round++) {
    const messages = [
      ...system.map((message) => ({ ...message, content: message.content.slice(0, systemChars) })),
      ...last.map((message) => ({ ...message, content: message.content.slice(-lastChars) })),
    ];
    tokens = await toTokens({ ...prompt, messages });
    if (tokens.length <= budget) return tokens;
    const shrink = Math.min(0.9, (budget / tokens.length) * 0.9);
    systemChars = Math.floor(systemChars * shrink);
    lastChars = Math.max(1, Math.floor(lastChars * shrink));
  }
  // Tools alone can fill a window; then the newest tokens are all there is room for. The first one
  // stays: models were never trained on text without it.
  return [...tokens.slice(0, 1), ...tokens.slice(1 - budget)];
}
