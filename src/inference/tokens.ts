// Token counts for the Llama-3 vocabulary without weights: a request can be refused, or sent to the right
// model, before any engine has seen it. Messages are counted exactly, in the frame of the model's template;
// tools, whose place in the prompt is the engine's own affair, as their JSON. Loaded on first use.

import { readFile } from 'node:fs/promises';
import type { Tokenizer } from 'hypertok';
import { type Task, toGivenPrompts } from './engine.ts';
import type { ChatMessage, ChatRequest } from './schema.ts';

export interface TokenCounter {
  /** Tokens of the prompt after the chat template; stops counting once it is over `limit`. */
  count(task: Task, vocabulary: Vocabulary, limit: number): Promise<number>;
  /** Tokens of a text, at once; null while the vocabulary, whose 45 MB wait for who needs them, is not loaded. */
  countText(text: string): number | null;
}

/** What a token is usually long, for texts that nobody counts. */
const bytesPerToken = 4;

export const estimateTokens = (text: string): number =>
  Math.ceil(Buffer.byteLength(text) / bytesPerToken);

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
/** Encoded in one go without the event loop noticing: some two milliseconds. */
const sliceLength = 32_768;

export function createLlama3Counter(): TokenCounter {
  let loading: Promise<Tokenizer> | undefined;
  let loaded: Tokenizer | undefined;

  async function load(): Promise<Tokenizer> {
    const { fromBytes } = await import('hypertok');
    const file = new URL(import.meta.resolve('@hypertok/vocab-llama3/vocab.htk'));
    // The package would fetch a vocabulary from the network; we give it the bytes.
    loaded = await fromBytes(await readFile(file), { tier: 'single' });
    return loaded;
  }

  function ensure(): Promise<Tokenizer> {
    loading ??= load();
    return loading;
  }

  async function count(task: Task, vocabulary: Vocabulary, limit: number): Promise<number> {
    const tokenizer = await ensure();
    let most = 0;
    // Several prompts are several sequences: the longest one decides.
    for (const prompt of prompts(task, templates[vocabulary])) {
      most = Math.max(most, await countPieces(tokenizer, prompt, limit));
      if (most > limit) break;
    }
    return most;
  }

  async function countPieces(
    tokenizer: Tokenizer,
    pieces: Iterable<string | number>,
    limit: number,
  ): Promise<number> {
    let total = 0;
    let sinceRest = 0;
    for (const piece of pieces) {
      if (typeof piece === 'number') {
        total += piece;
        continue;
      }
      for (let at = 0; at < piece.length && total <= limit; ) {
        const end = sliceEnd(piece, at);
        sinceRest += end - at;
        // Also between many small messages: others wait for their turn meanwhile.
        if (sinceRest > sliceLength) {
          await new Promise(setImmediate);
          sinceRest = end - at;
        }
        total += tokenizer.encodeSync(piece.slice(at, end)).length;
        at = end;
      }
      if (total > limit) break;
    }
    return total;
  }

  return {
    count,
    countText(text) {
      if (loaded !== undefined) return loaded.encodeSync(text).length;
      // Who can wait for it meets the failure again.
      ensure().catch(() => {});
      return null;
    },
  };
}

/** Before a space between words, where no token crosses; anywhere if the text has none. */
function sliceEnd(text: string, start: number): number {
  const end = start + sliceLength;
  if (end >= text.length) return text.length;
  for (let at = end; at > end - 4096; at--) {
    if (text[at] === ' ' && /\w/.test(text[at - 1] ?? '') && /\w/.test(text[at + 1] ?? ''))
      return at;
  }
  return end;
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
