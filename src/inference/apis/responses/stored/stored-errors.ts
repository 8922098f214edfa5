// What can go wrong with stored responses, in OpenAI's words where it has any: clients recognise them.

import { InferenceError, invalidValue } from '#inference/errors.ts';
import { rateLimited } from '#lib/errors.ts';

const quote = (id: string) => `'${id.slice(0, 100)}'`;

export const responseNotFound = (id: string) =>
  new InferenceError(404, `Response with id ${quote(id)} not found.`, { code: 'not_found' });

export const previousNotFound = (id: string) =>
  new InferenceError(400, `Previous response with id ${quote(id)} not found.`, {
    code: 'previous_response_not_found',
    param: 'previous_response_id',
  });

export const chainBroken = (id: string) =>
  new InferenceError(
    400,
    `A response before ${quote(id)} was deleted or has expired, so it can't be continued. Send the conversation as input instead.`,
    { code: 'previous_response_not_found', param: 'previous_response_id' },
  );

export const previousUnfinished = (id: string) =>
  invalidValue(
    'previous_response_id',
    `Response ${quote(id)} has not ended yet. Wait until its status is neither queued nor in_progress.`,
  );

export const chainTooLong = (maxResponses: number) =>
  invalidValue(
    'previous_response_id',
    `The conversation has ${maxResponses} responses, the maximum. Begin a new one, with what matters of this one as input.`,
  );

export const contextTooLarge = (maxBytes: number) =>
  new InferenceError(
    413,
    `The input and what it continues or refers to are over ${maxBytes} bytes, the maximum. Begin a new conversation, with what matters of this one as input.`,
    { code: 'request_too_large', param: 'input' },
  );

export const itemNotFound = (id: string) =>
  new InferenceError(
    404,
    `Item with id ${quote(id)} not found. Items are not persisted when \`store\` is set to false. Try again with \`store\` set to true, or remove this item from your input.`,
    { code: 'not_found', param: 'input' },
  );

export const tooManyReferences = (max: number) =>
  invalidValue('input', `The input refers to more than ${max} stored items, the maximum.`);

export const unstorableBackground = () =>
  invalidValue(
    'background',
    'A background response must be stored: leave out store, or set it to true.',
  );

export const backgroundInBatch = () =>
  invalidValue(
    'background',
    "A line of a batch can't be a background response. Leave out background.",
  );

export const tooManyBackground = (max: number) =>
  rateLimited(
    `The account has ${max} background responses that have not ended, the maximum. Wait for one, or cancel it.`,
    5_000,
  );

export const notInBackground = (id: string, action: 'cancelled' | 'streamed') =>
  new InferenceError(
    400,
    `Response ${quote(id)} can't be ${action}: it was not created with background=true.`,
    { code: 'invalid_value' },
  );

export const alreadyEnded = (status: string) =>
  new InferenceError(400, `Cannot cancel a ${status} response.`, { code: 'invalid_value' });

export const eventsGone = (id: string) =>
  new InferenceError(
    400,
    `The events of response ${quote(id)} are no longer kept. Get it without stream.`,
    { code: 'invalid_value', param: 'stream' },
  );

export const tooManyFollowers = (max: number) =>
  rateLimited(`The account follows ${max} background responses at once, the maximum.`, 5_000);
