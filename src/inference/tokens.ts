// Exact token counts for the Llama-3 vocabulary without weights, for the fallback rule: a request can be
// sent to the right model before any engine has seen it. Loaded on first use.

import { readFile } from 'node:fs/promises';
import type { Tokenizer } from 'hypertok';
import type { Task } from './engine.ts';

export interface TokenCounter {
  /** Tokens of the prompt after the chat template; stops counting once it is over `limit`. */
  count(task: Task, limit: number): Promise<number>;
}

/** Special tokens and role name around each message, in Llama-3's template and in ChatML alike. */
const tokensPerMessage = 5;
/** Beginning of text, and the opening of the answer. */
const tokensPerPrompt = 4;
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
    let total = tokensPerPrompt;
    for (const piece of pieces(task)) {
      if (typeof piece === 'number') {
        total += piece;
      } else {
        for (let at = 0; at < piece.length && total <= limit; ) {
          if (at > 0) await new Promise(setImmediate);
          const end = sliceEnd(piece, at);
          total += tokenizer.encodeSync(piece.slice(at, end)).length;
          at = end;
        }
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

/** Texts to encode, and numbers of tokens that are known without. */
function* pieces(task: Task): Generator<string | number> {
  if (task.kind === 'chat') {
    for (const message of task.body.messages) {
      yield tokensPerMessage;
      if (typeof message.content === 'string') yield message.content;
      else for (const part of message.content ?? []) yield part.text ?? '';
      if (message.tool_calls?.length) yield JSON.stringify(message.tool_calls);
    }
    if (task.body.tools?.length) yield JSON.stringify(task.body.tools);
    return;
  }
  const { prompt } = task.body;
  if (typeof prompt === 'string') yield prompt;
  else if (typeof prompt[0] === 'number') yield prompt.length;
  // Several prompts are several sequences: the longest one decides.
  else yield* longest(prompt as (string | number[])[]);
}

function* longest(prompts: (string | number[])[]): Generator<string | number> {
  const byLength = prompts.toSorted((one, other) => other.length - one.length);
  const first = byLength[0];
  if (first !== undefined) yield typeof first === 'string' ? first : first.length;
}
