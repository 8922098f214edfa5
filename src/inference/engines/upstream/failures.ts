// What an upstream's refusals, error bodies and broken connections mean to a client. The messages are written here;
// addresses, keys and whatever a server echoes never appear in them.

import type { IncomingHttpHeaders } from 'node:http';
import { findOtherPart } from '#inference/content-parts.ts';
import { EngineError, type Task, toMaxTokens, toOverflowText } from '#inference/engine.ts';
import { findOverflow, type Overflow } from './context-overflow.ts';
import { findRefusal, type UpstreamRefusal } from './refusal-body.ts';

const maxRetryAfterMs = 10 * 60_000;
const busy = /queue is full|overloaded|server busy|maximum pending|too many requests|at capacity/i;
const unknownModel = /model.{0,200}(not found|does not exist|not exist|not loaded)/i;

/** How vLLM, llama-server and SGLang refuse images, audio and video if their model reads text only. */
const textOnly =
  /not a multimodal|only supports text input|does not support (image|audio|video|multimodal)|(image|audio|video) input is not supported|support (for )?multimodal/i;
/** Client errors that llama-server and Ollama report with status 500. */
const clientErrors =
  /(image|audio|video) input is not supported|does not support multimodal|failed to (load image|download image|parse|tokenize prompt)|invalid base64|unsupported param|only no echo|"prompt" (elements|must|is required)|requires --jinja|cannot use both json_schema and grammar|jinja exception|invalid JSON schema/i;
/** llama-server, whose slots share one cache by default: other requests have filled it, and this one may fit alone. */
const sharedContext = /^context size has been exceeded/i;
const notSupported = /\b(not|only) (currently |yet )?supported\b/i;

/** What was sent. An embedding or rerank request has no members that decide about an error. */
type RefusedTask = Task | { readonly kind: 'pooling'; readonly body: Record<string, unknown> };

/** The error of a response with a status other than 200, or with an error as its body. */
export function toFailure(
  status: number,
  headers: Readonly<IncomingHttpHeaders>,
  text: string,
  task: RefusedTask,
): EngineError {
  const refusal = findRefusal(text);
  return translate(status >= 400 ? status : (refusal?.status ?? status), headers, refusal, task);
}

/** The error of an event in a stream, or of the body of a 200. */
export const toEventFailure = (event: object, task: Task): EngineError =>
  toRefusalFailure(findRefusal(event), task);

/** The same for an error body that was read already. */
export const toRefusalFailure = (refusal: UpstreamRefusal | null, task: Task): EngineError =>
  translate(refusal?.status ?? 500, {}, refusal, task);

/** The parts of an upstream's error that decide which error the client gets. */
interface UpstreamFailure {
  readonly status: number;
  readonly refusal: UpstreamRefusal | null;
  readonly message: string;
  readonly overflow: Overflow | null;
  readonly isBusy: boolean;
  readonly retryAfterMs: number | null;
  readonly task: RefusedTask;
  /** The original error, which is only logged. */
  readonly cause: Error;
}

interface FailureRule {
  readonly matches: (failure: UpstreamFailure) => boolean;
  readonly toError: (failure: UpstreamFailure) => EngineError;
}

/** The first rule that matches decides; the last one always does. */
const failureRules: readonly FailureRule[] = [
  {
    matches: ({ overflow }) => overflow !== null,
    toError: ({ overflow, task, cause }) => contextExceeded(overflow as Overflow, task, cause),
  },
  {
    // The operator's quota: a retry does not help.
    matches: ({ refusal }) => refusal?.code === 'insufficient_quota',
    toError: ({ cause }) => unavailable('is out of quota', cause),
  },
  { matches: isOverloaded, toError: overloaded },
  {
    matches: ({ status }) => status === 408 || status === 504,
    toError: ({ cause }) => tooSlow('timed out', cause),
  },
  {
    matches: ({ status }) => status === 401 || status === 403,
    toError: ({ cause }) => unavailable('refused the configured credentials', cause),
  },
  { matches: ({ status }) => status === 413, toError: ({ cause }) => requestTooLarge(cause) },
  {
    // The configuration names the model, so the client is not at fault.
    matches: ({ status, refusal, message }) =>
      status <= 422 && (refusal?.code === 'model_not_found' || unknownModel.test(message)),
    toError: ({ cause }) => unavailable('does not know its model', cause),
  },
  {
    // Some servers answer chats only. They are sound: a client must not be able to eject them. A
    // wrong URL looks the same, and ejects the backend as soon as a chat fails.
    matches: ({ status, task }) => task.kind === 'completion' && isMissing(status),
    toError: ({ cause }) => noCompletions(cause),
  },
  {
    // It counts against the backend, but the client gets the same status, with a retry-after.
    matches: ({ status }) => status === 503,
    toError: ({ cause }) => notAvailable(cause),
  },
  {
    matches: ({ status }) => status !== 400 && status !== 422,
    // A readable error with status 500 may be the request's fault: some requests fail on every server.
    toError: ({ status, refusal, cause }) =>
      unavailable(`responded with status ${status}`, cause, status === 500 && refusal !== null),
  },
  {
    matches: ({ message }) => /api key/i.test(message),
    toError: ({ cause }) => unavailable('refused the configured credentials', cause),
  },
  { matches: () => true, toError: rejected },
];

function translate(
  given: number,
  headers: Readonly<IncomingHttpHeaders>,
  refusal: UpstreamRefusal | null,
  task: RefusedTask,
): EngineError {
  const message = refusal?.message ?? '';
  const status = given === 500 && clientErrors.test(message) ? 400 : given;
  const isShared = status === 500 && sharedContext.test(message);
  // Older llama-servers report an overflow with status 500.
  const mayOverflow = !isShared && ((status >= 400 && status < 429) || status === 500);
  const failure: UpstreamFailure = {
    status,
    refusal,
    message,
    overflow: mayOverflow && refusal !== null ? findOverflow(refusal) : null,
    isBusy: isShared || busy.test(message),
    retryAfterMs: toRetryAfterMs(headers),
    task,
    cause: toCause(given, refusal),
  };
  const rule = failureRules.find(({ matches }) => matches(failure)) as FailureRule;
  return rule.toError(failure);
}

function isOverloaded({ status, retryAfterMs, isBusy }: UpstreamFailure): boolean {
  return isOverload(status, retryAfterMs) || (status >= 500 && isBusy);
}

/** True if the status and `retry-after` alone say that the server takes no more requests at the moment. */
function isOverload(status: number, retryAfterMs: number | null): boolean {
  return status === 429 || status === 529 || (status === 503 && retryAfterMs !== null);
}

/** Statuses of errors that the request may have caused. */
const doubtfulStatuses: readonly number[] = [400, 413, 422, 500];

/** True if the server may have no endpoint at the path. */
const isMissing = (status: number) => status === 404 || status === 405 || status === 501;

/**
 * What a response says of its server before its body is read, as `toFailure` would: refused
 * credentials and timeouts are failures of the server. `unknown`: the server is overloaded, the
 * request may be at fault, or the server answers chats only.
 */
export function judgeResponse(
  status: number,
  headers: Readonly<IncomingHttpHeaders>,
  isChat: boolean,
): 'passed' | 'failed' | 'unknown' {
  if (status === 200) return 'passed';
  const isUnknown =
    doubtfulStatuses.includes(status) ||
    isOverload(status, toRetryAfterMs(headers)) ||
    (isMissing(status) && !isChat);
  return isUnknown ? 'unknown' : 'failed';
}

function overloaded({ retryAfterMs, cause }: UpstreamFailure): EngineError {
  const detail = retryAfterMs === null ? { cause } : { retryAfterMs, cause };
  return new EngineError('overloaded', 'The backend takes no more requests at the moment.', detail);
}

const notAvailable = (cause: Error) =>
  new EngineError('unavailable', 'The backend responded with status 503.', {
    code: 'model_unavailable',
    isPassing: true,
    cause,
  });

const noCompletions = (cause: Error) =>
  new EngineError(
    'rejected',
    'The backend of this model has no endpoint for completions. Send chats to /v1/chat/completions instead. If those fail too, the URL of the backend is wrong.',
    { code: 'model_not_supported', param: 'model', cause },
  );

const requestTooLarge = (cause: Error) =>
  new EngineError('rejected', 'The body is larger than the backend of this model takes.', {
    code: 'request_too_large',
    cause,
  });

function rejected({ refusal, task, cause }: UpstreamFailure): EngineError {
  const part = task.kind === 'chat' ? findOtherPart(task.body.messages) : null;
  if (part !== null && textOnly.test(refusal?.message ?? ''))
    return new EngineError('rejected', `The backend of this model takes no ${part.type}.`, {
      code: 'unsupported_content_type',
      param: part.place,
      cause,
    });
  const detail = refusal === null || refusal.message === '' ? '' : `: ${redact(refusal)}`;
  const param = refusal?.param ?? null;
  const head = param?.split(/[.[]/)[0];
  return new EngineError('rejected', `The backend of this model refused the request${detail}`, {
    code: toCode(refusal),
    // The server may name a parameter of its own, which the client did not send.
    param: head !== undefined && head in task.body ? param : null,
    cause,
  });
}

function toCode(refusal: UpstreamRefusal | null): string {
  const { code, param, message } = refusal ?? { code: null, param: null, message: '' };
  if (code !== null && /^[a-z][a-z0-9_]+$/.test(code)) return code;
  return param !== null && notSupported.test(message) ? 'unsupported_parameter' : 'invalid_value';
}

function contextExceeded(overflow: Overflow, task: RefusedTask, cause: Error) {
  if (task.kind === 'pooling') return textTooLong(overflow, 'query' in task.body, cause);
  const completion = overflow.completion ?? toMaxTokens(task);
  return new EngineError('rejected', toOverflowText({ ...overflow, completion }), {
    code: 'context_length_exceeded',
    param: task.kind === 'chat' ? 'messages' : 'prompt',
    cause,
  });
}

function textTooLong({ window }: Overflow, isRerank: boolean, cause: Error): EngineError {
  const limit =
    window === null ? 'than this model reads' : `than the ${window} tokens this model reads`;
  return new EngineError('rejected', `A text is longer ${limit}. Split it into shorter ones.`, {
    code: 'context_length_exceeded',
    param: isRerank ? 'documents' : 'input',
    cause,
  });
}

export function unavailable(what: string, cause?: unknown, isDoubtful = false): EngineError {
  return new EngineError('unavailable', `The backend ${what}.`, { cause, isDoubtful });
}

/** A response that can't be read, which a proxy or a request of an odd form may cause. */
export const unreadable = (what: string, cause?: unknown): EngineError =>
  new EngineError('unavailable', `The backend ${what}.`, { cause, isUnreadable: true });

/** vLLM and SGLang end a choice this way for reasons of their own, e.g. when they are shut down. */
export const isBrokenOff = (finishReason: unknown) =>
  finishReason === 'abort' || finishReason === 'error';

export const brokenOff = () => unavailable('aborted its response');

/** The error of reading a response: one that the response reports, or that its content is invalid. */
export const orUnreadable = (error: unknown): EngineError =>
  error instanceof EngineError ? error : unreadable('sent a response that cannot be read', error);

export function tooSlow(what: string, cause?: unknown): EngineError {
  return new EngineError('unavailable', `The backend ${what}.`, {
    code: 'upstream_timeout',
    cause,
  });
}

/** What a failed connection says about the backend, by error code. */
const connectionFailures: Readonly<Record<string, string>> = {
  head_too_large: 'sent too many headers',
  not_http: 'sent something that is not HTTP',
  ENOTFOUND: 'has a host name that could not be resolved',
  EAI_AGAIN: 'has a host name that could not be resolved',
  EPROTO: 'does not speak TLS, though its address is https',
  ERR_SSL_WRONG_VERSION_NUMBER: 'does not speak TLS, though its address is https',
};

/** The error of a connection: refused, reset, not HTTP, too large. */
export function toConnectionFailure(error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  const given = (error as { code?: unknown })?.code;
  const code = typeof given === 'string' ? given : '';
  // A server that restarts.
  if (code === 'ECONNREFUSED')
    return new EngineError('unavailable', 'The backend is not listening.', {
      isPassing: true,
      cause: error,
    });
  const known = connectionFailures[code];
  if (known !== undefined) return unavailable(known, error);
  if (code === 'connect_timeout') return tooSlow('could not be reached in time', error);
  if (code === 'closed')
    return new EngineError('unavailable', 'The backend was closed.', {
      isCutOff: true,
      cause: error,
    });
  if (/CERT|SIGNATURE|ISSUER/.test(code))
    return unavailable(`has a certificate that can't be trusted (${code})`, error);
  return new EngineError('unavailable', 'The backend broke the connection.', {
    isBroken: true,
    cause: error,
  });
}

/** The content type without its parameters, for messages. */
export function describeType(headers: { 'content-type'?: string | undefined }): string {
  return /^[\w.+-]+\/[\w.+-]+/.exec(headers['content-type'] ?? '')?.[0].slice(0, 60) ?? 'something';
}

/** An error for the log. Bodies may echo what the user sent, so only names are kept. */
function toCause(status: number, refusal: UpstreamRefusal | null): Error {
  const { type, code } = refusal ?? { type: null, code: null };
  return new Error(`status ${status}, type ${type ?? 'none'}, code ${code ?? 'none'}`);
}

/** The server's message without addresses, paths and keys. */
function redact({ message }: UpstreamRefusal): string {
  return message
    .slice(0, 400)
    .replaceAll(/\b[a-z]+:\/\/\S+/gi, '…')
    .replaceAll(/\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b/g, '…')
    .replaceAll(/\b[\w-]+(\.[\w-]+)+\/\S+/g, '…')
    .replaceAll(/\b(localhost|[\w-]+(\.[\w-]+)+):\d+/gi, '…')
    .replaceAll(/\b(sk|mr|key|hf|Bearer)[-_ ][\w-]{8,}/gi, '…')
    .replaceAll(/(^|\s)(\/[\w.-]+){2,}/g, '$1…');
}

function toRetryAfterMs(headers: Readonly<IncomingHttpHeaders>): number | null {
  const precise = Number(headers['retry-after-ms'] || Number.NaN);
  if (precise >= 0) return Math.min(Math.ceil(precise), maxRetryAfterMs);
  const given = headers['retry-after'] || 'none';
  const seconds = Number(given);
  const ms = Number.isNaN(seconds) ? Date.parse(given) - Date.now() : seconds * 1000;
  return ms >= 0 ? Math.min(Math.ceil(ms), maxRetryAfterMs) : null;
}
