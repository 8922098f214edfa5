// The playground's conversation. It is stored only in this browser and deleted when the user signs out.

import type { ApiError } from '../api.ts';

/** A null setting uses the model's default. */
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

/** Measurements of a response and how it ended. Unknown values are null. */
export interface Outcome {
  servedBy: string | null;
  promptTokens: number | null;
  completionTokens: number | null;
  firstTokenMs: number | null;
  tokensPerSecond: number | null;
  /** The API's finish_reason, or `stopped` if the user stopped the response. */
  finish: string | null;
  failure: Failure | null;
}

export interface ToolCall {
  id: string;
  name: string;
  /** JSON text from the model, not validated. */
  arguments: string;
}

/** One token of a response, with its most likely alternatives. */
export interface TokenProbability {
  token: string;
  logprob: number;
  others: { token: string; logprob: number }[];
}

export interface Turn {
  id: string;
  role: 'user' | 'assistant' | 'tool';
  text: string;
  /** Set on responses that have ended. */
  outcome: Outcome | null;
  toolCalls?: ToolCall[];
  /** On tool results: the id of the tool call. */
  toolCallId?: string;
  /** Only if requested. Not stored, because they are many times larger than the text. */
  tokens?: TokenProbability[];
}

export interface Conversation {
  /** Null until the user selects one; the default model is used then. */
  model: string | null;
  system: string;
  settings: Settings;
  /** JSON as typed, possibly invalid; empty for none. */
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
  // Pages served over plain HTTP have no crypto.randomUUID.
  id: `${Date.now()}-${Math.random().toString(36).slice(2)}`,
  role,
  text,
  outcome: null,
});

/** The turns up to the last one that is not a response: what a response answers. */
export const toPromptTurns = (turns: Turn[]) =>
  turns.slice(0, turns.findLastIndex(({ role }) => role !== 'assistant') + 1);

const storageKey = (userId: string) => `millrace.conversation.${userId}`;
/** In characters. Browsers allow a site about five million in total. */
const maxStoredLength = 1_000_000;

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

/** An older version of the dashboard may have stored something else. */
const isTurn = (turn: Partial<Turn> | null) =>
  ['user', 'assistant', 'tool'].includes(turn?.role ?? '') && typeof turn?.text === 'string';

/** Drops the oldest turns if the conversation is too long to store. */
export function storeConversation(userId: string, conversation: Conversation): void {
  let turns = conversation.turns.map(({ tokens, ...turn }) => turn);
  let text = JSON.stringify({ ...conversation, turns });
  while (text.length > maxStoredLength && turns.length > 0) {
    turns = turns.slice(2);
    text = JSON.stringify({ ...conversation, turns });
  }
  try {
    localStorage.setItem(storageKey(userId), text);
  } catch {
    // Storage is full or disabled. The conversation lasts until the page is closed.
  }
}

export function deleteConversation(userId: string): void {
  localStorage.removeItem(storageKey(userId));
}
