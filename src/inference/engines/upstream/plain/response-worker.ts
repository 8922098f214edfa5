// The entry point of the thread that reads large responses, one at a time.

import { parentPort } from 'node:worker_threads';
import { orUnreadable } from '#inference/engines/upstream/failures.ts';
import type { UpstreamRefusal } from '#inference/engines/upstream/refusal-body.ts';
import { toText } from '#inference/engines/upstream/usage.ts';
import { splitResponse } from '#inference/wire/envelope.ts';
import type { EngineResponse } from '#inference/wire/response.ts';
import { ready } from '#lib/async/thread.ts';
import { readResponse } from './parse-response.ts';
import { maxCountedLength, type ResponseJob, type ResponseResult } from './response-thread.ts';

function run({ blocks, task, type, envelope }: ResponseJob): ResponseResult {
  try {
    const read = readResponse(task, Buffer.concat(blocks).toString('utf8'), type);
    if ('refusal' in read) return { refusal: shorten(read.refusal) };
    return serialise(read.response, envelope);
  } catch (error) {
    const { message, isUnreadable } = orUnreadable(error);
    return { unavailable: message, isUnreadable };
  }
}

function serialise(response: EngineResponse, envelope: ResponseJob['envelope']): ResponseResult {
  const [before, after] = splitResponse(envelope, response);
  const generated = toText(response.choices);
  const encoder = new TextEncoder();
  return {
    before: encoder.encode(before),
    after: encoder.encode(after),
    choices: response.choices.length,
    usage: response.usage,
    generated: generated.length > maxCountedLength ? null : generated,
    generatedBytes: Buffer.byteLength(generated),
  };
}

/** Only a few short members of an error are ever used. */
function shorten(refusal: UpstreamRefusal | null): UpstreamRefusal | null {
  if (refusal === null) return null;
  const members = Object.entries(refusal.members).filter(
    ([, value]) => typeof value !== 'object' && String(value).length <= 2000,
  );
  return { ...refusal, members: Object.fromEntries(members.slice(0, 100)) };
}

parentPort?.on('message', (job: ResponseJob) => {
  const result = run(job);
  const transfer = 'before' in result ? [result.before.buffer, result.after.buffer] : [];
  parentPort?.postMessage(result, transfer as ArrayBuffer[]);
});
parentPort?.postMessage(ready);
