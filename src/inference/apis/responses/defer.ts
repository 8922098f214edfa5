// Queues a background response instead of generating it at once.

import type { Origin, Translation } from '#inference/apis/endpoint.ts';
import { modelNotFound } from '#inference/errors.ts';
import { toResponseObject } from './response-object.ts';
import type { ResponseObject, ResponseRequest } from './schema.ts';
import type { NewResponse } from './store.ts';
import { backgroundInBatch, unstorableBackground } from './stored-errors.ts';

export async function defer(
  request: ResponseRequest,
  place: NewResponse,
  { id, accountId, caller, catalog, responses }: Origin,
): Promise<Translation> {
  const { background, followers, clock } = responses;
  if (caller === undefined) throw backgroundInBatch();
  if (request.store === false) throw unstorableBackground();
  const model = catalog.find(request.model);
  if (model === undefined) throw modelNotFound(request.model);
  const created = Math.floor(clock.now() / 1000);
  const begun = toResponseObject(request, { id: `resp_${id}`, created, model: model.id });
  const queued: ResponseObject = { ...begun, status: 'queued' };
  await background.submit(place, caller, request, queued);
  if (request.stream !== true) return { answer: queued };
  return { follow: await followers.open(accountId, queued.id, -1) };
}
