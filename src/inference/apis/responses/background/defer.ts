// Queues a background response instead of generating it at once. It is admitted as any other request, when it arrives.

import type { Generation, Origin, Translation } from '#inference/apis/endpoint.ts';
import type { WithResponses } from '#inference/apis/responses/parts.ts';
import type { Translated } from '#inference/apis/responses/request/to-task.ts';
import { toResponseObject } from '#inference/apis/responses/response-object.ts';
import type {
  InputItem,
  ResponseObject,
  ResponseRequest,
} from '#inference/apis/responses/schema.ts';
import type { Turn } from '#inference/apis/responses/stored/store.ts';
import {
  backgroundInBatch,
  unstorableBackground,
} from '#inference/apis/responses/stored/stored-errors.ts';

/** How a response is generated. */
export type ResponseGeneration = Generation & Pick<Translated, 'task'>;

export async function defer(
  request: ResponseRequest,
  { place, items }: Turn,
  { task, format }: ResponseGeneration,
  { id, accountId, caller, responses }: Origin & WithResponses,
): Promise<Translation> {
  const { background, followers, clock, admit } = responses;
  if (caller === undefined) throw backgroundInBatch();
  if (request.store === false) throw unstorableBackground();
  // Before the response begins, which is billed even if its client can't follow it.
  const follower = request.stream === true ? followers.reserve(accountId) : undefined;
  try {
    const admitted = { caller, bodyBytes: countBytes(request, items, task) };
    const { asked, reservation } = await admit(admitted, task, format);
    const created = Math.floor(clock.now() / 1000);
    const begun = toResponseObject(request, { id: `resp_${id}`, created, model: asked.id });
    const queued: ResponseObject = { ...begun, status: 'queued' };
    await background.submit(place, { caller, reservation }, request, queued);
    const headers = reservation.headers ?? [];
    if (follower === undefined) return { answer: queued, headers };
    return { follow: await followers.open(accountId, queued.id, -1, follower), headers };
  } catch (error) {
    follower?.release();
    throw error;
  }
}

/** Size of a request without its body. Its tools count as they are defined for the model. */
export const countBytes = (
  request: ResponseRequest,
  items: readonly InputItem[],
  { body }: Translated['task'],
): number => countJson([{ ...request, tools: body.tools }, items]);

export const countJson = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));
