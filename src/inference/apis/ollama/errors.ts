// Ollama's error format: a message, and the status says the rest.

import { type ErrorFormat, mapErrorFormat, type Rendered } from '#http/error-format.ts';
import { codeOf, inferenceErrorFormat } from '#inference/errors.ts';

export const ollamaErrorFormat: ErrorFormat = mapErrorFormat(inferenceErrorFormat, toOllama);

function toOllama(rendered: Rendered): Rendered {
  const { message } = (rendered.body as { error: { message: string } }).error;
  return { ...rendered, body: { error: message }, code: codeOf(rendered) };
}
