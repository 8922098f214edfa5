// What can go wrong with requests to /v1/batches. What is wrong with lines is in `line-faults.ts`.

import { InferenceError, invalidValue } from '#inference/errors.ts';

export const batchNotFound = (id: string) =>
  new InferenceError(404, `The batch ${JSON.stringify(id.slice(0, 64))} does not exist.`, {
    code: 'batch_not_found',
    param: 'id',
  });

export const batchEnded = (status: string) =>
  new InferenceError(
    409,
    `The batch is ${status}. Only one that is validating or in_progress can be cancelled.`,
    { code: 'batch_not_cancellable', headers: { 'x-should-retry': 'false' } },
  );

export const tooManyBatches = (max: number) =>
  new InferenceError(429, `An account may have at most ${max} batches that have not ended.`, {
    type: 'requests',
    code: 'batch_limit_exceeded',
    headers: { 'x-should-retry': 'false' },
  });

export const wrongEndpoint = (endpoint: string, allowed: readonly string[]) =>
  invalidValue(
    'endpoint',
    `endpoint must be one of ${allowed.join(', ')}, got ${JSON.stringify(endpoint)}.`,
  );

export const wrongWindow = () =>
  invalidValue('completion_window', 'completion_window must be at most 30 days, e.g. "24h".');
