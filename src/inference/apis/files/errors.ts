// What can go wrong with files.

import { InferenceError, invalidValue, missingParameter } from '#inference/errors.ts';

export const fileNotFound = (id: string, param = 'id') =>
  new InferenceError(404, `The file ${JSON.stringify(id.slice(0, 64))} does not exist.`, {
    code: 'file_not_found',
    param,
  });

export const fileInUse = (batchId: string) =>
  new InferenceError(
    409,
    `The batch ${batchId} reads this file. Cancel the batch, or wait until it has ended.`,
    { code: 'file_in_use', headers: { 'x-should-retry': 'false' } },
  );

export const fileTooLarge = (maxBytes: number) =>
  new InferenceError(413, `A file may have at most ${maxBytes} bytes. Split it into several.`, {
    code: 'file_too_large',
    param: 'file',
  });

export const storageFull = (maxBytes: number) =>
  new InferenceError(
    413,
    `The files of an account may have at most ${maxBytes} bytes together. Delete some first.`,
    { code: 'storage_limit_exceeded', param: 'file' },
  );

export const tooManyFiles = (max: number) =>
  new InferenceError(413, `An account may have at most ${max} files. Delete some first.`, {
    code: 'storage_limit_exceeded',
    param: 'file',
  });

export const emptyFile = () => invalidValue('file', 'The file is empty.');

export const noFile = () =>
  missingParameter('file', 'The form has no part named "file" with a filename.');

export const secondFile = () => invalidValue('file', 'The form has more than one file. Send one.');

export const wrongPurpose = (purpose: string | undefined) =>
  purpose === undefined
    ? missingParameter('purpose')
    : invalidValue(
        'purpose',
        `purpose must be "batch", got ${JSON.stringify(purpose.slice(0, 40))}.`,
      );

export const wrongExpiry = (param: 'expires_after.anchor' | 'expires_after.seconds') =>
  invalidValue(
    param,
    param === 'expires_after.anchor'
      ? 'expires_after.anchor must be "created_at".'
      : 'expires_after.seconds must be an integer between 3600 and 2592000.',
  );

export const badForm = (reason: string) =>
  new InferenceError(400, `The form can't be read: ${reason}.`, { code: 'invalid_form' });

export const notAForm = () =>
  new InferenceError(
    415,
    'Send the file with "Content-Type: multipart/form-data" and the boundary of its parts.',
    { code: 'unsupported_media_type' },
  );

export const transfersBusy = () =>
  new InferenceError(503, 'Too many files are being transferred. Try again shortly.', {
    type: 'service_unavailable_error',
    code: 'server_is_overloaded',
    headers: { 'retry-after': '2', 'retry-after-ms': '2000' },
  });
