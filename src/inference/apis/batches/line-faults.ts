// What can be wrong with the lines of a batch, as its `errors` and its error file say it.

import type { BatchLineError } from './schema.ts';

export type Fault = Omit<BatchLineError, 'line'>;

export const emptyInput: Fault = {
  code: 'empty_file',
  message: 'The file has no lines.',
  param: null,
};

export const tooManyLines = (max: number): Fault => ({
  code: 'too_many_lines',
  message: `A batch may have at most ${max} lines. Split the file into several.`,
  param: null,
});

export const lineTooLong = (maxBytes: number): Fault => ({
  code: 'line_too_long',
  message: `A line may have at most ${maxBytes} bytes.`,
  param: null,
});

export const invalidLine = (message: string): Fault => ({
  code: 'invalid_json_line',
  message: `The line is not a JSON object: ${message}`,
  param: null,
});

export const invalidMember = (code: string, param: string, message: string): Fault => ({
  code,
  message,
  param,
});

export const callerGone: Fault = {
  code: 'caller_revoked',
  message: 'The API key or the person that created the batch may no longer use this account.',
  param: null,
};

/** The error of a line that was not run before its batch expired. */
export const expiredLine = {
  code: 'batch_expired',
  message: 'This request could not be executed before the completion window expired.',
};
