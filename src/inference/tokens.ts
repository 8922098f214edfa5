// Token counts for the Llama-3 vocabulary without weights, for the fallback rule: a request can be sent to
// the right model before any engine has seen it. Texts are counted exactly; of templates the usual frame is
// counted, and tools as their JSON. Loaded on first use.

import { readFile } from 'node:fs/promises';
import type { Tokenizer } from 'hypertok';
import type { Task } from './engine.ts';
import type { ChatRequest } from './schema.ts';

export interface TokenCounter {
  /** Tokens of the prompt after the chat template; stops counting once it is over `limit`. */
  count(task: Task, limit: number): Promise<number>;
}

/** Special tokens and role name around each message, in Llama-3's template and in ChatML alike. */
const tokensPerMessage = 5;
/** Beginning of text, and the opening of the answer. */
const tokensPerChat = 4;
/** Beginning of text. Prompts of token ids are taken as they are. */
const tokensPerText = 1;
/** Encoded in one go without the event loop noticing. */
const sliceLength = 65_536;

export function createLlama3Counter(): TokenCounter {
  let loading: Promise<Tokenizer> | undefined;

  async function load(): Promise<Tokenizer> {
    const { fromBytes } = await import('hypertok');
    const file = new URL(import.meta.resolve('@hypertok/vocab-llama3/vocab.htk'));
    // The package would fetch a vocabulary from the network; we give it the bytes.
    return fromBytes(await readFile(file), { tier: 'single' });
  }

  async function count(task: Task, limit: number): Promise<number> {
    loading ??= load();
    const tokenizer = await loading;
    let most = 0;
    // Several prompts are several sequences: the longest one decides.
    for (const prompt of prompts(task)) {
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
    for (const piece of pieces) {
      if (typeof piece === 'number') {
        total += piece;
        continue;
      }
      for (let at = 0; at < piece.length && total <= limit; ) {
        if (at > 0) await new Promise(setImmediate);
        const end = sliceEnd(piece, at);
        total += tokenizer.encodeSync(piece.slice(at, end)).length;
        at = end;
      }
      if (total > limit) break;
    }
    return total;
  }

  return { count };
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
function* prompts(task: Task): Generator<Iterable<string | number>> {
  if (task.kind === 'chat') {
    yield chatPieces(task.body);
    return;
  }
  const { prompt } = task.body;
  const isOne = typeof prompt === 'string' || typeof prompt[0] === 'number';
  for (const one of (isOne ? [prompt] : prompt) as (string | number[])[]) {
    yield typeof one === 'string' ? [tokensPerText, one] : [one.length];
  }
}

function* chatPieces({ messages, tools }: ChatRequest): Generator<string | number> {
  yield tokensPerChat;
  for (const message of messages) {
    yield tokensPerMessage;
    if (typeof message.content === 'string') yield message.content;
    else for (const part of message.content ?? []) yield part.text ?? '';
    if (message.tool_calls?.length) yield JSON.stringify(message.tool_calls);
  }
  if (tools?.length) yield JSON.stringify(tools);
}
