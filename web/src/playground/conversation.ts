// The playground's conversation. It is kept in this browser and nowhere else, and goes when its person
// signs out.

import type { ApiError } from '../api.ts';

/** Null leaves a setting to the model. */
export interface Settings {
  temperature: number | null;
  top_p: number | null;
  top_k: number | null;
  min_p: number | null;
  max_tokens: number | null;
  seed: number | null;
  frequency_penalty: number | null;
  presence_penalty: number | null;
  repetition_penalty: number | null;
  stop: string | null;
}

export type Failure = Pick<ApiError, 'message' | 'suggestion' | 'requestId'>;

/** How an answer came about. What is not known is null. */
export interface Outcome {
  servedBy: string | null;
  promptTokens: number | null;
  completionTokens: number | null;
  firstTokenMs: number | null;
  tokensPerSecond: number | null;
  /** The wire's finish_reason, or that the person stopped it. */
  finish: string | null;
  failure: Failure | null;
}

export interface ToolCall {
  id: string;
  name: string;
  /** JSON, as the model wrote it. */
  arguments: string;
}

/** One token of an answer, with the likeliest others in its place. */
export interface TokenProbability {
  token: string;
  logprob: number;
  others: { token: string; logprob: number }[];
}

export interface Turn {
  id: string;
  role: 'user' | 'assistant' | 'tool';
  text: string;
  /** On answers that have ended. */
  outcome: Outcome | null;
  toolCalls?: ToolCall[];
  /** On results: which call they are of. */
  toolCallId?: string;
  /** Only when they were asked for; not kept in storage, being many times the text. */
  tokens?: TokenProbability[];
}

export interface Conversation {
  /** Null until one is picked: then the default stands in. */
  model: string | null;
  system: string;
  settings: Settings;
  /** JSON as it was written, which may not be valid yet; empty for none. */
  tools: string;
  schema: string;
  logprobs: boolean;
  turns: Turn[];
}

export const emptySettings: Settings = {
  temperature: null,
  top_p: null,
  top_k: null,
  min_p: null,
  max_tokens: null,
  seed: null,
  frequency_penalty: null,
  presence_penalty: null,
  repetition_penalty: null,
  stop: null,
};

export const emptyConversation: Conversation = {
  model: null,
  system: '',
  settings: emptySettings,
  tools: '',
  schema: '',
  logprobs: false,
  turns: [],
};

export const newTurn = (role: Turn['role'], text: string): Turn => ({
  // crypto.randomUUID is missing on pages that came over plain HTTP.
  id: `${Date.now()}-${Math.random().toString(36).slice(2)}`,
  role,
  text,
  outcome: null,
});

/** Up to what was last asked: the turns that an answer is to. */
export const toPromptTurns = (turns: Turn[]) =>
  turns.slice(0, turns.findLastIndex(({ role }) => role !== 'assistant') + 1);

const storageKey = (userId: string) => `millrace.conversation.${userId}`;
/** Browsers give a site about five million characters for everything. */
const maxStored = 1_000_000;

export function loadConversation(userId: string): Conversation {
  try {
    const stored = JSON.parse(localStorage.getItem(storageKey(userId)) ?? '{}');
    return {
      ...emptyConversation,
      ...stored,
      settings: { ...emptySettings, ...stored.settings },
      turns: Array.isArray(stored.turns) ? stored.turns.filter(isTurn) : [],
    };
  } catch {
    return emptyConversation;
  }
}

/** What an older version of this page stored may look different. */
const isTurn = (turn: Partial<Turn> | null) =>
  ['user', 'assistant', 'tool'].includes(turn?.role ?? '') && typeof turn?.text === 'string';

/** The oldest turns are left behind when it grows too long to keep. */
export function storeConversation(userId: string, conversation: Conversation): void {
  let turns = conversation.turns.map(({ tokens, ...turn }) => turn);
  let text = JSON.stringify({ ...conversation, turns });
  while (text.length > maxStored && turns.length > 0) {
    turns = turns.slice(2);
    text = JSON.stringify({ ...conversation, turns });
  }
  try {
    localStorage.setItem(storageKey(userId), text);
  } catch {
    // Storage is full or forbidden: the conversation lives as long as the page.
  }
}

export function deleteConversation(userId: string): void {
  localStorage.removeItem(storageKey(userId));
}
