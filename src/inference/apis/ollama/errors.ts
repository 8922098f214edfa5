// Ollama's error format: a message, and the status says the rest.

import type { ErrorFormat, Rendered } from '#http/error-format.ts';
import { codeOf, inferenceErrorFormat } from '#inference/errors.ts';

export const ollamaErrorFormat: ErrorFormat = {
  renderRefusal: (refusal) => toOllama(inferenceErrorFormat.renderRefusal(refusal)),
  renderViolation: (...violation) => toOllama(inferenceErrorFormat.renderViolation(...violation)),
  renderOwn(error) {
    const rendered = inferenceErrorFormat.renderOwn(error);
    return rendered && toOllama(rendered);
  },
};

function toOllama(rendered: Rendered): Rendered {
  const { message } = (rendered.body as { error: { message: string } }).error;
  return { ...rendered, body: { error: message }, code: codeOf(rendered) };
}
