// One line of a batch: the request in it, and the line of its result.

import { JsonGauge, parseJson } from '#http/body/json.ts';
import { type Rendered, renderFailure } from '#http/error-format.ts';
import type { ApiParts, ListedEndpoint } from '#inference/apis/apis.ts';
import type { Generation, Origin } from '#inference/apis/endpoint.ts';
import { codeOf, modelNotFound } from '#inference/errors.ts';
import type { Catalog } from '#inference/models/catalog.ts';
import { modelIn } from '#inference/request.ts';
import { type RawViolation, toViolation } from '#lib/schema/validation-error.ts';
import { createValidator } from '#lib/schema/validator.ts';
import { expiredLine, type Fault, invalidLine, invalidMember } from './line-faults.ts';

export interface LineRequest {
  readonly custom_id: string;
  readonly body: unknown;
}

const maxIdLength = 512;

/** Checks everything but the body. */
export function parseLine(bytes: Buffer, url: string, maxValues: number): LineRequest | Fault {
  let line: Record<string, unknown>;
  try {
    new JsonGauge(maxValues).add(bytes);
    line = parseJson(bytes) as Record<string, unknown>;
  } catch (error) {
    return invalidLine((error as Error).message);
  }
  if (typeof line !== 'object' || line === null || Array.isArray(line)) {
    return invalidLine('it is another value.');
  }
  const { custom_id, method, url: own, body } = line;
  if (typeof custom_id !== 'string' || custom_id === '' || custom_id.length > maxIdLength) {
    const message = `custom_id must be a string of 1 to ${maxIdLength} characters.`;
    return invalidMember('invalid_custom_id', 'custom_id', message);
  }
  if (method !== 'POST') {
    return invalidMember('invalid_method', 'method', 'method must be "POST".');
  }
  if (own !== url) {
    return invalidMember('mismatched_url', 'url', `url must be the batch's endpoint, "${url}".`);
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    return invalidMember('invalid_type', 'body', 'body must be an object.');
  }
  if ((body as { stream?: unknown }).stream === true) {
    return invalidMember(
      'invalid_value',
      'body.stream',
      'A batch has no streams: leave stream out.',
    );
  }
  return { custom_id, body };
}

export type Prepared = Generation | { readonly response: Rendered };

/** Turns the body of a line into a task, as its endpoint does, or into a response that needs no model. */
export type Prepare = (
  endpoint: ListedEndpoint,
  body: unknown,
  from: Omit<Origin, 'catalog'>,
) => Promise<Prepared>;

export function createPrepare(catalog: Catalog, parts: ApiParts): Prepare {
  const validators = new Map<ListedEndpoint, ReturnType<typeof createValidator>>();
  return async (endpoint, body, from) => {
    const { errors } = endpoint;
    const validate = validators.get(endpoint) ?? createValidator(endpoint.body);
    validators.set(endpoint, validate);
    if (!validate(body)) {
      const violation = toViolation(validate.errors as RawViolation[]);
      return { response: errors.renderViolation(violation, 'body', body) };
    }
    try {
      const model = modelIn(body);
      if (catalog.find(model) === undefined) throw modelNotFound(model);
      const translation = await endpoint.translate(body, { ...parts, ...from, catalog });
      if ('task' in translation) return translation;
      if ('answer' in translation) return { response: { status: 200, body: translation.answer } };
      throw new Error(`${endpoint.url} has no batches`);
    } catch (error) {
      return { response: renderFailure(errors, error) };
    }
  };
}

/** What a refused body says about its line. */
export function toFault(refused: Rendered): Fault {
  const { message, param } = (refused.body as { error: { message: string; param?: string } }).error;
  return { code: codeOf(refused), message, param: param == null ? 'body' : `body.${param}` };
}

export interface LineResult {
  readonly isError: boolean;
  /** A line of the output file or of the error file. */
  readonly text: string;
}

export function toResult(
  id: string,
  customId: string,
  { status, body }: Pick<Rendered, 'status' | 'body'>,
): LineResult {
  const response = { status_code: status, request_id: id, body };
  return { isError: status !== 200, text: toText(id, customId, response, null) };
}

export const toExpired = (id: string, customId: string): LineResult => ({
  isError: true,
  text: toText(id, customId, null, expiredLine),
});

const toText = (id: string, customId: string, response: object | null, error: object | null) =>
  `${JSON.stringify({ id: `batch_req_${id}`, custom_id: customId, response, error })}\n`;
