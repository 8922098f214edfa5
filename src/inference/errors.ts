// The errors of the inference API: everything that can go wrong for a client of /v1, in OpenAI's format.

import { LimitReached } from '#accounts/limits/errors.ts';
import type { ErrorFormat, Rendered } from '#http/error-format.ts';
import { internal, type Refusal, type RefusalCode } from '#lib/errors.ts';
import { toPathText, type Violation, type ViolationKind } from '#lib/schema/validation-error.ts';
import { explainViolation } from '#lib/schema/violation-text.ts';
import { EngineError, toOverflowText } from './engine.ts';
import { type ModelKind, modelUses } from './pooling.ts';

export class InferenceError extends Error {
  readonly status: number;
  readonly type: string;
  readonly code: string | null;
  readonly param: string | null;
  readonly headers: Record<string, string>;

  constructor(
    status: number,
    message: string,
    detail: {
      type?: string;
      code?: string;
      param?: string;
      headers?: Record<string, string>;
      /** The original error, which is only logged. */
      cause?: unknown;
    } = {},
  ) {
    super(message, { cause: detail.cause });
    this.name = 'InferenceError';
    this.status = status;
    this.type = detail.type ?? 'invalid_request_error';
    this.code = detail.code ?? null;
    this.param = detail.param ?? null;
    this.headers = detail.headers ?? {};
  }

  toBody() {
    const { message, type, param, code } = this;
    return { error: { message, type, param, code } };
  }
}

export const modelNotFound = (model: string) =>
  new InferenceError(
    404,
    `The model ${JSON.stringify(model.slice(0, 100))} does not exist here. GET /v1/models lists those that do.`,
    { code: 'model_not_found', param: 'model' },
  );

export function modelNotSupported(model: string, kind: ModelKind): InferenceError {
  const { does, endpoint } = modelUses[kind];
  return new InferenceError(400, `${model} ${does}: send its requests to ${endpoint}.`, {
    code: 'model_not_supported',
    param: 'model',
  });
}

export const notAble = (model: string, ability: string) =>
  new InferenceError(400, `No backend of ${model} can ${ability}. Name a model that can.`, {
    code: 'model_not_supported',
    param: 'model',
  });

const deploymentUnavailable = ({ message, retryAfterMs }: EngineError) =>
  new InferenceError(503, message, {
    type: 'service_unavailable_error',
    code: 'deployment_unavailable',
    headers: retryAfterMs === null ? { 'x-should-retry': 'false' } : retryAfter(retryAfterMs),
  });

const noBackend = (model: string, retryAfterMs: number) =>
  new InferenceError(
    503,
    `No backend serves ${model}. Ask an owner of this server to add one or to deploy the model.`,
    {
      type: 'service_unavailable_error',
      code: 'no_backend',
      headers: retryAfter(retryAfterMs),
    },
  );

const modelUnavailable = (model: string, retryAfterMs: number, cause: unknown) =>
  new InferenceError(503, `No healthy backend serves ${model} at the moment. Try again shortly.`, {
    type: 'service_unavailable_error',
    code: 'model_unavailable',
    headers: retryAfter(retryAfterMs),
    cause,
  });

const overloaded = (model: string, why: string, retryAfterMs: number) =>
  new InferenceError(
    503,
    `${model} is overloaded. ${why} Try again after the time in retry-after.`,
    {
      type: 'service_unavailable_error',
      code: 'server_is_overloaded',
      headers: retryAfter(retryAfterMs),
    },
  );

const backendFailed = (model: string, cause: unknown) =>
  new InferenceError(
    502,
    `The backend of ${model} can't be reached, or failed while it was answering. Try again.`,
    {
      type: 'server_error',
      code: 'upstream_error',
      cause,
    },
  );

const backendTooSlow = (model: string, cause: unknown) =>
  new InferenceError(504, `The backend of ${model} did not answer in time. Try again.`, {
    type: 'server_error',
    code: 'upstream_timeout',
    cause,
  });

export const internalError = () =>
  new InferenceError(500, internal(null).message, { type: 'server_error', code: 'internal_error' });

/** For requests that run while their caller loses the right to them. */
export const rightEnded = () =>
  new InferenceError(
    401,
    'The API key was revoked, has expired or may no longer be used for this, or the person who sent the request was signed out.',
    { code: 'invalid_api_key' },
  );

export const missingParameter = (param: string, message = `${param} is missing.`) =>
  new InferenceError(400, message, { code: 'missing_required_parameter', param });

export const invalidValue = (param: string, message: string) =>
  new InferenceError(400, message, { code: 'invalid_value', param });

export const invalidRequest = (code: string, param: string | null, message: string) =>
  new InferenceError(code === 'request_too_large' ? 413 : 400, message, {
    code,
    ...(param === null ? {} : { param }),
  });

export const contextLengthExceeded = (
  param: 'messages' | 'prompt',
  /** `prompt` is null if it was not counted. */
  counts: { window: number; prompt: number | null; completion: number | null },
) => invalidRequest('context_length_exceeded', param, toOverflowText(counts));

export const tooManyTokens = (
  param: string,
  { asked, cap, model }: { asked: number; cap: number; model: string },
) =>
  invalidRequest(
    'integer_above_max_value',
    param,
    `${param} is ${asked}; the most that ${model} answers with is ${cap}.`,
  );

export const unsupportedContentType = (param: string, kind: string) =>
  new InferenceError(
    400,
    `${param} is of type ${JSON.stringify(kind.slice(0, 40))}; this model takes only "text" parts.`,
    { code: 'unsupported_content_type', param },
  );

/** Converts a failure to an error for the client; undefined if it is an internal error. */
export function toInferenceError(error: unknown, model: string): InferenceError | undefined {
  if (error instanceof InferenceError) return error;
  if (!(error instanceof EngineError)) return undefined;
  const retryAfterMs = error.retryAfterMs ?? 1000;
  if (error.code === 'model_unavailable') return modelUnavailable(model, retryAfterMs, error);
  if (error.code === 'no_backend') return noBackend(model, retryAfterMs);
  if (error.code === 'deployment_unavailable') return deploymentUnavailable(error);
  if (error.code === 'upstream_timeout') return backendTooSlow(model, error);
  switch (error.failure) {
    case 'overloaded':
      return overloaded(model, error.message, retryAfterMs);
    case 'unavailable':
      return backendFailed(model, error);
    case 'rejected':
      return invalidRequest(error.code ?? 'invalid_value', error.param, error.message);
  }
}

const refusals: Record<RefusalCode, { type: string; code: string | null; retry?: false }> = {
  no_credentials: { type: 'invalid_request_error', code: null },
  invalid_credentials: { type: 'invalid_request_error', code: 'invalid_api_key' },
  forbidden: { type: 'permission_error', code: 'insufficient_scope' },
  unknown_url: { type: 'invalid_request_error', code: 'unknown_url' },
  method_not_allowed: { type: 'invalid_request_error', code: 'method_not_allowed' },
  invalid_http: { type: 'invalid_request_error', code: 'invalid_request' },
  expectation_failed: { type: 'invalid_request_error', code: 'expectation_failed' },
  invalid_json: { type: 'invalid_request_error', code: 'invalid_json' },
  invalid_body: { type: 'invalid_request_error', code: 'invalid_value' },
  unsupported_media_type: { type: 'invalid_request_error', code: 'unsupported_media_type' },
  timed_out: { type: 'invalid_request_error', code: 'request_timeout' },
  too_large: { type: 'invalid_request_error', code: 'request_too_large' },
  rate_limited: { type: 'requests', code: 'rate_limit_exceeded' },
  not_found: { type: 'invalid_request_error', code: 'not_found' },
  conflict: { type: 'invalid_request_error', code: 'conflict', retry: false },
  misdirected: { type: 'invalid_request_error', code: 'misdirected_request' },
  overloaded: { type: 'service_unavailable_error', code: 'server_is_overloaded' },
  shutting_down: { type: 'service_unavailable_error', code: 'model_unavailable' },
  database_unavailable: { type: 'service_unavailable_error', code: 'database_unavailable' },
  disk_full: { type: 'server_error', code: 'disk_full', retry: false },
  internal: { type: 'server_error', code: 'internal_error' },
};

export const inferenceErrorFormat: ErrorFormat = {
  renderRefusal(refusal: Refusal): Rendered {
    const { type, code, retry } = refusals[refusal.code];
    return {
      status: refusal.status,
      headers: {
        ...(refusal.retryAfterMs === null ? {} : retryAfter(refusal.retryAfterMs)),
        ...(retry === false ? { 'x-should-retry': 'false' } : {}),
      },
      body: { error: { message: refusal.message, type, param: refusal.param, code } },
    };
  },

  renderViolation(violation, _part, value): Rendered {
    const message = explainViolation(violation, value);
    const param = violation.path.length === 0 ? null : toPathText(violation.path);
    return {
      status: 400,
      body: { error: { message, type: 'invalid_request_error', param, code: toCode(violation) } },
    };
  },

  renderOwn(error): Rendered | undefined {
    if (error instanceof LimitReached) return refuseByLimit(error);
    if (!(error instanceof InferenceError)) return undefined;
    return { status: error.status, headers: error.headers, body: error.toBody() };
  },
};

/** The error's code, or its type if it has no code. */
export function codeOf({ body, code }: Rendered): string {
  const { error } = body as { error: { code: string | null; type: string } };
  return code ?? error.code ?? error.type;
}

const limitTypes = {
  requests: { type: 'requests', code: 'rate_limit_exceeded' },
  concurrent: { type: 'requests', code: 'rate_limit_exceeded' },
  tokens: { type: 'tokens', code: 'rate_limit_exceeded' },
  budget: { type: 'insufficient_quota', code: 'insufficient_quota' },
} as const;

function refuseByLimit({ limit, message, retryAfterMs, headers }: LimitReached): Rendered {
  const retry = retryAfterMs === null ? { 'x-should-retry': 'false' } : retryAfter(retryAfterMs);
  return {
    status: 429,
    headers: { ...headers, ...retry },
    body: { error: { message, param: null, ...limitTypes[limit] } },
  };
}

function retryAfter(ms: number): Record<string, string> {
  return { 'retry-after': String(Math.max(1, Math.ceil(ms / 1000))), 'retry-after-ms': String(ms) };
}

const violationCodes: Partial<Record<ViolationKind, string>> = {
  missing: 'missing_required_parameter',
  letter_case: 'unknown_parameter',
  type: 'invalid_type',
  too_short: 'string_below_min_length',
  too_long: 'string_above_max_length',
  too_few: 'array_below_min_length',
  too_many: 'array_above_max_length',
};

function toCode({ kind, isInteger }: Violation): string {
  const number = isInteger ? 'integer' : 'decimal';
  if (kind === 'too_small') return `${number}_below_min_value`;
  if (kind === 'too_large') return `${number}_above_max_value`;
  return violationCodes[kind] ?? 'invalid_value';
}
