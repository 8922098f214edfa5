// The thread that counts tokens. Several counts take turns, so that a short one need not wait for a long one.

import { parentPort } from 'node:worker_threads';
import { ready } from '#lib/async/thread.ts';
import { createLlama3Tokenizer } from './llama3-tokenizer.ts';
import { readLlama3Vocabulary } from './llama3-vocabulary.ts';
import type { CountAnswer, CountJob } from './token-thread.ts';

/** Characters that are encoded in one go. That takes about 4 ms, at most 30 ms. */
const sliceLength = 32_768;

const countTokens = createLlama3Tokenizer(await readLlama3Vocabulary());

async function count({ text, lengths, limit }: CountJob): Promise<number> {
  let total = 0;
  let sinceRest = 0;
  let at = 0;
  for (const length of lengths) {
    for (const textEnd = at + length; at < textEnd && total <= limit; ) {
      const end = sliceEnd(text, at, textEnd);
      sinceRest += end - at;
      // Also yields between many small messages.
      if (sinceRest > sliceLength) {
        await new Promise(setImmediate);
        sinceRest = end - at;
      }
      total += countTokens(text.slice(at, end));
      at = end;
    }
    if (total > limit) break;
  }
  return total;
}

/** Ends a slice before a space between words, which no token crosses; anywhere if the text has no space. */
function sliceEnd(text: string, start: number, textEnd: number): number {
  const end = start + sliceLength;
  if (end >= textEnd) return textEnd;
  for (let at = end; at > end - 4096; at--) {
    if (text[at] === ' ' && /\w/.test(text[at - 1] ?? '') && /\w/.test(text[at + 1] ?? ''))
      return at;
  }
  return end;
}

const answer = (given: CountAnswer) => parentPort?.postMessage(given);

parentPort?.on('message', (job: CountJob) => {
  count(job).then(
    (counted) => answer({ id: job.id, counted }),
    (error) => answer({ id: job.id, counted: error }),
  );
});
parentPort?.postMessage(ready);
