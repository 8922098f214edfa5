// OpenAI's error format, as everywhere in /v1, with the Responses API's names for the members of a request.

import type { ErrorFormat, Rendered } from '#http/error-format.ts';
import { inferenceErrorFormat } from '#inference/errors.ts';

/** The members of a chat that errors name, and what they were translated from. */
const names: Readonly<Record<string, string>> = {
  messages: 'input',
  max_completion_tokens: 'max_output_tokens',
  response_format: 'text.format',
};

export const responsesErrorFormat: ErrorFormat = {
  ...inferenceErrorFormat,
  renderOwn(error) {
    const rendered = inferenceErrorFormat.renderOwn(error);
    return rendered && withOwnNames(rendered);
  },
};

function withOwnNames(rendered: Rendered): Rendered {
  const { error } = rendered.body as { error: { message: string; param: string | null } };
  const [member = ''] = error.param?.split(/[.[]/) ?? [];
  const name = names[member];
  if (name === undefined) return rendered;
  const message = error.message.replaceAll(member, name);
  // The place inside of a message says nothing about the input's items.
  return { ...rendered, body: { error: { ...error, message, param: name } } };
}
