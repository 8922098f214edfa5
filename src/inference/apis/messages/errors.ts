// The errors of the Messages API, in Anthropic's format. They are those of the other inference
// endpoints, under the names that Anthropic's clients know.

import { type ErrorFormat, mapErrorFormat, type Rendered } from '#http/error-format.ts';
import { type InferenceError, inferenceErrorFormat } from '#inference/errors.ts';

export const messagesErrorFormat: ErrorFormat = {
  ...mapErrorFormat(inferenceErrorFormat, toMessagesError),
  withId: (body, requestId) => ({ ...(body as object), request_id: requestId }),
};

/** The same body as of an HTTP error, for a stream that fails. */
export function toErrorBody(error: InferenceError, requestId: string) {
  const { body } = toMessagesError({ status: error.status, body: error.toBody() });
  return messagesErrorFormat.withId?.(body, requestId);
}

const types: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

/** From an error in the format of the other inference endpoints. */
function toMessagesError({ status: given, headers, body }: Rendered): Rendered {
  const { message, code } = (body as { error: { message: string; code: string | null } }).error;
  const status = code === 'server_is_overloaded' ? 529 : given;
  const type = types[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error');
  const text = code === 'context_length_exceeded' ? toTooLong(message) : message;
  const details = code === null ? {} : { details: { error_code: code } };
  return {
    status,
    ...(headers && { headers }),
    ...(code !== null && { code }),
    body: { type: 'error', error: { type, message: text, ...details } },
  };
}

/** Claude Code compacts the conversation if it reads these words. */
function toTooLong(overflow: string): string {
  const [, window] = /context length is (\d+) tokens/.exec(overflow) ?? [];
  const [, prompt] = /prompt has (?:at least )?(\d+)/.exec(overflow) ?? [];
  if (window === undefined) return `prompt is too long. ${overflow}`;
  return `prompt is too long: ${prompt ?? `over ${window}`} tokens > ${window} maximum`;
}
