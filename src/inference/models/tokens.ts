// Token counts for the Llama-3 vocabulary without weights: a request can be refused, or sent to the right
// model, before any engine has seen it. Messages are counted exactly, in the frame of the model's template;
// tools, whose place in the prompt is the engine's own affair, as their JSON.

import { type Task, toGivenPrompts } from '#inference/engine.ts';
import type { ChatMessage, ChatRequest } from '#inference/schema.ts';
import { createTokenThread } from './token-thread.ts';

export interface TokenCounter {
  /** Tokens of the prompt after the chat template; stops counting once it is over `limit`. */
  count(task: Task, vocabulary: Vocabulary, limit: number): Promise<number>;
  /** Tokens of a text; null while the vocabulary, whose 75 MB wait for who needs them, is not loaded. */
  countText(text: string): Promise<number> | null;
  close(): Promise<void>;
}

/** What a token is usually long, for texts that nobody counts. */
const bytesPerToken = 4;

export const estimateTokens = (text: string): number => estimateTokensOf(Buffer.byteLength(text));

export const estimateTokensOf = (bytes: number): number => Math.ceil(bytes / bytesPerToken);

export type Vocabulary = keyof typeof templates;

interface Template {
  /** Beginning of text, and the opening of the answer. */
  readonly tokensPerChat: number;
  /** What the template itself says at the start of the system message, which it makes where there is none. */
  readonly preamble: string | null;
  /** The template drops white space around each content. */
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
/** Beginning of text. Prompts of token ids are taken as they are. */
const tokensPerText = 1;

export function createLlama3Counter(): TokenCounter {
  const thread = createTokenThread();

  return {
    async count(task, vocabulary, limit) {
      let most = 0;
      // Several prompts are several sequences: the longest one decides.
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

/** Each prompt as texts to encode, and numbers of tokens that are known without. */
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
