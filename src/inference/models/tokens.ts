// Token counts for the Llama-3 vocabulary without weights, so that a request can be refused, or routed to the right
// model, before any engine has seen it. Messages are counted exactly, with the model's chat template. Tools are
// counted as their JSON, because each engine places them in the prompt differently.

import { type Task, toGivenPrompts } from '#inference/engine.ts';
import type { ChatMessage, ChatRequest } from '#inference/schema.ts';
import { createTokenThread } from './token-thread.ts';

export interface TokenCounter {
  /** Counts the tokens of the prompt after the chat template is applied; stops once they exceed `limit`. */
  count(task: Task, vocabulary: Vocabulary, limit: number): Promise<number>;
  /**
   * Counts the tokens of a text; null while the vocabulary is not loaded. It takes 15 MB, so it is loaded on
   * demand.
   */
  countText(text: string): Promise<number> | null;
  close(): Promise<void>;
}

/** Usual length of a token, for texts that are estimated rather than counted. */
const bytesPerToken = 4;

export const estimateTokens = (text: string): number => estimateTokensOf(Buffer.byteLength(text));

export const estimateTokensOf = (bytes: number): number => Math.ceil(bytes / bytesPerToken);

export type Vocabulary = keyof typeof templates;

interface Template {
  /** Tokens for the beginning of text and the opening of the response. */
  readonly tokensPerChat: number;
  /** Text that the template puts at the start of the system message, which it adds if there is none. */
  readonly preamble: string | null;
  /** Whether the template trims whitespace around each content. */
  readonly trims: boolean;
}

const templates = {
  'llama3-chatml': { tokensPerChat: 4, preamble: null, trims: false },
  llama3: {
    tokensPerChat: 5,
    preamble: 'Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n',
    trims: true,
  },
} as const satisfies Record<string, Template>;

/** Special tokens, role name and line break around each message, in both templates. */
const tokensPerMessage = 5;
/** The beginning of text. Prompts given as token ids get no such token. */
const tokensPerText = 1;

export function createLlama3Counter(): TokenCounter {
  const thread = createTokenThread();

  return {
    async count(task, vocabulary, limit) {
      let most = 0;
      // Several prompts are separate sequences, so the longest one counts.
      for (const prompt of prompts(task, templates[vocabulary])) {
        const { texts, known } = gather(prompt);
        const counted = texts.length === 0 ? 0 : await thread.count(texts, limit - known);
        most = Math.max(most, known + counted);
        if (most > limit) break;
      }
      return most;
    },
    countText: (text) => (thread.isReady() ? thread.count([text], Infinity) : null),
    close: thread.close,
  };
}

function gather(pieces: Iterable<string | number>): { texts: string[]; known: number } {
  const texts: string[] = [];
  let known = 0;
  for (const piece of pieces) {
    if (typeof piece === 'number') known += piece;
    else texts.push(piece);
  }
  return { texts, known };
}

/** Yields each prompt as texts to encode and token counts that are already known. */
function* prompts(task: Task, template: Template): Generator<Iterable<string | number>> {
  if (task.kind === 'chat') {
    yield chatPieces(task.body, template);
    return;
  }
  for (const one of toGivenPrompts(task.body)) {
    yield typeof one === 'string' ? [tokensPerText, one] : [one.length];
  }
}

function* chatPieces(
  { messages, tools }: ChatRequest,
  { tokensPerChat, preamble, trims }: Template,
): Generator<string | number> {
  yield tokensPerChat;
  if (preamble !== null) yield preamble;
  if (preamble !== null && messages[0]?.role !== 'system') yield tokensPerMessage;
  for (const message of messages) {
    yield tokensPerMessage;
    const content = toText(message.content);
    yield trims ? content.trim() : content;
    if (message.tool_calls?.length) yield JSON.stringify(message.tool_calls);
  }
  if (tools?.length) yield JSON.stringify(tools);
}

const toText = (content: ChatMessage['content']) =>
  typeof content === 'string' ? content : (content ?? []).map(({ text }) => text ?? '').join('');
