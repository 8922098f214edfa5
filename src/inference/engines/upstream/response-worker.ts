// The entry point of the thread that reads large responses, one at a time.

import { parentPort } from 'node:worker_threads';
import type { EngineResponse } from '#inference/engine.ts';
import { splitAnswer } from '#inference/wire.ts';
import { ready } from '#lib/async/thread.ts';
import { readAnswer } from './answer.ts';
import { orUnreadable } from './failures.ts';
import { toText } from './generated-text.ts';
import type { UpstreamRefusal } from './refusal-body.ts';
import { maxSaidLength, type ResponseAnswer, type ResponseQuestion } from './response-thread.ts';

function answer({ blocks, task, type, envelope }: ResponseQuestion): ResponseAnswer {
  try {
    const read = readAnswer(task, Buffer.concat(blocks).toString('utf8'), type);
    if ('refusal' in read) return { refusal: shorten(read.refusal) };
    return write(read.answer, envelope);
  } catch (error) {
    return { unavailable: orUnreadable(error).message };
  }
}

function write(given: EngineResponse, envelope: ResponseQuestion['envelope']): ResponseAnswer {
  const [before, after] = splitAnswer(envelope, given);
  const said = toText(given.choices);
  const encoder = new TextEncoder();
  return {
    before: encoder.encode(before),
    after: encoder.encode(after),
    choices: given.choices.length,
    usage: given.usage,
    said: said.length > maxSaidLength ? null : said,
    saidBytes: Buffer.byteLength(said),
  };
}

/** An error's members are searched for a few short ones. */
function shorten(refusal: UpstreamRefusal | null): UpstreamRefusal | null {
  if (refusal === null) return null;
  const members = Object.entries(refusal.members).filter(
    ([, value]) => typeof value !== 'object' && String(value).length <= 2000,
  );
  return { ...refusal, members: Object.fromEntries(members.slice(0, 100)) };
}

parentPort?.on('message', (question: ResponseQuestion) => {
  const answered = answer(question);
  const transfer = 'before' in answered ? [answered.before.buffer, answered.after.buffer] : [];
  parentPort?.postMessage(answered, transfer as ArrayBuffer[]);
});
parentPort?.postMessage(ready);
