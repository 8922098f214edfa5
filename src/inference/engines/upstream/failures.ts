// What an upstream's refusals, error bodies and broken connections mean in the words of our boundary. What
// clients are told is said here; addresses, keys and whatever a server echoes stay out of it.

import type { IncomingHttpHeaders } from 'node:http';
import { findOtherPart } from '#inference/content-parts.ts';
import { EngineError, type Task } from '#inference/engine.ts';
import { findOverflow, type Overflow } from './context-overflow.ts';
import { findRefusal, type UpstreamRefusal } from './refusal-body.ts';

const longestRetryAfterMs = 10 * 60_000;
const busy = /queue is full|overloaded|server busy|maximum pending|too many requests|at capacity/i;
const unknownModel = /model.{0,200}(not found|does not exist|not exist|not loaded)/i;

/** vLLM, llama-server and SGLang of pictures and the like, when their model reads text alone. */
const textAlone =
  /not a multimodal|only supports text input|does not support (image|audio|video|multimodal)|(image|audio|video) input is not supported|support (for )?multimodal/i;
/** What llama-server and Ollama call a fault of their own, though nobody could serve such a request. */
const mistakes =
  /(image|audio|video) input is not supported|does not support multimodal|failed to (load image|download image|parse|tokenize prompt)|invalid base64|unsupported param|only no echo|"prompt" (elements|must|is required)|requires --jinja|cannot use both json_schema and grammar|jinja exception|invalid JSON schema/i;
/** llama-server, whose slots share one cache unless it is told otherwise. */
const sharedContext = /^context size has been exceeded/i;
const notSupported = /\b(not|only) (currently |yet )?supported\b/i;

/** An answer with a status other than 200, or an error inside of one that began well. */
export function toFailure(
  status: number,
  headers: IncomingHttpHeaders,
  text: string,
  task: Task,
): EngineError {
  const refusal = findRefusal(text);
  return translate(status >= 400 ? status : (refusal?.status ?? status), headers, refusal, task);
}

/** An error event of a stream, or an error as the body of a 200. */
export const toEventFailure = (event: object, task: Task): EngineError =>
  toRefusalFailure(findRefusal(event), task);

/** The same of an error that was found. */
export const toRefusalFailure = (refusal: UpstreamRefusal | null, task: Task): EngineError =>
  translate(refusal?.status ?? 500, {}, refusal, task);

function translate(
  given: number,
  headers: IncomingHttpHeaders,
  refusal: UpstreamRefusal | null,
  task: Task,
): EngineError {
  const cause = describe(given, refusal);
  const said = refusal?.message ?? '';
  const status = given === 500 && mistakes.test(said) ? 400 : given;
  // The requests that run there have filled what they share; alone, this one may fit.
  const isShared = status === 500 && sharedContext.test(said);
  // Older llama-servers say this with status 500.
  if (!isShared && ((status >= 400 && status < 429) || status === 500)) {
    const overflow = refusal === null ? null : findOverflow(refusal);
    if (overflow !== null) return contextExceeded(overflow, task, cause);
  }
  const retryAfterMs = toRetryAfterMs(headers);
  const isBusy = isShared || busy.test(said);
  const hasTime = retryAfterMs !== null && status === 503;
  // A spent quota is our operator's: waiting does not help.
  if (refusal?.code === 'insufficient_quota') return unavailable('is out of quota', cause);
  if (status === 429 || status === 529 || hasTime || (isBusy && status >= 500)) {
    const detail = retryAfterMs === null ? { cause } : { retryAfterMs, cause };
    return new EngineError(
      'overloaded',
      'The backend takes no more requests at the moment.',
      detail,
    );
  }
  if (status === 408 || status === 504) return tooSlow('gave up by itself', cause);
  if (status === 401 || status === 403) return unavailable('refused our credentials', cause);
  if (status === 413)
    return new EngineError('rejected', 'The body is larger than the backend of this model takes.', {
      code: 'request_too_large',
      cause,
    });
  // The name was ours, and so is the mistake.
  const isModel = refusal?.code === 'model_not_found' || unknownModel.test(said);
  if (isModel && status <= 422) return unavailable('does not know its model', cause);
  // It lives and said what went wrong, in a way that programs do: there are requests that every server fails.
  const isDoubtful = status === 500 && refusal !== null;
  if (status !== 400 && status !== 422)
    return unavailable(`answered with status ${status}`, cause, isDoubtful);
  if (/api key/i.test(said)) return unavailable('refused our credentials', cause);
  return rejected(refusal, task, cause);
}

function rejected(refusal: UpstreamRefusal | null, task: Task, cause: Error): EngineError {
  const part = task.kind === 'chat' ? findOtherPart(task.body.messages) : null;
  if (part !== null && textAlone.test(refusal?.message ?? ''))
    return new EngineError('rejected', `The backend of this model takes no ${part.type}.`, {
      code: 'unsupported_content_type',
      param: part.place,
      cause,
    });
  const said = refusal === null || refusal.message === '' ? '' : `: ${withoutPlaces(refusal)}`;
  const param = refusal?.param ?? null;
  const head = param?.split(/[.[]/)[0];
  return new EngineError('rejected', `The backend of this model refused the request${said}`, {
    code: toCode(refusal),
    // What the server calls a parameter may be its own affair.
    param: head !== undefined && head in task.body ? param : null,
    cause,
  });
}

function toCode(refusal: UpstreamRefusal | null): string {
  const { code, param, message } = refusal ?? { code: null, param: null, message: '' };
  if (code !== null && /^[a-z][a-z0-9_]+$/.test(code)) return code;
  return param !== null && notSupported.test(message) ? 'unsupported_parameter' : 'invalid_value';
}

function contextExceeded(overflow: Overflow, task: Task, cause: Error) {
  const { window, prompt, isAtLeast, completion } = overflow;
  const { max_tokens } = task.body;
  const asked = (task.kind === 'chat' ? task.body.max_completion_tokens : null) ?? max_tokens;
  const wanted = completion ?? asked ?? null;
  const room = window === null ? 'its context window' : `its context window of ${window} tokens`;
  const least = isAtLeast ? 'at least ' : '';
  const has = prompt === null ? '' : ` The prompt has ${least}${prompt} tokens.`;
  const asks = wanted === null ? '' : ` ${wanted} were asked for as completion.`;
  return new EngineError(
    'rejected',
    `Prompt and completion do not fit the model: they are more than ${room}.${has}${asks}`,
    {
      code: 'context_length_exceeded',
      param: task.kind === 'chat' ? 'messages' : 'prompt',
      cause,
    },
  );
}

export function unavailable(what: string, cause?: unknown, isDoubtful = false): EngineError {
  return new EngineError('unavailable', `The backend ${what}.`, { cause, isDoubtful });
}

/** As vLLM and SGLang say that they end an answer for reasons of their own, such as being shut down. */
export const isBrokenOff = (finishReason: unknown) =>
  finishReason === 'abort' || finishReason === 'error';

export const brokenOff = () => unavailable('broke the answer off');

/** What went wrong while its words were read: it said something that nobody says. */
export const orUnreadable = (error: unknown): EngineError =>
  error instanceof EngineError ? error : unavailable('said what can not be read', error);

export function tooSlow(what: string, cause?: unknown): EngineError {
  return new EngineError('unavailable', `The backend ${what}.`, {
    code: 'upstream_timeout',
    cause,
  });
}

/** What broke on the way: refused, reset, not HTTP, too large. */
export function toConnectionFailure(error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  const code = (error as { code?: unknown })?.code;
  if (code === 'connect_timeout') return tooSlow('could not be reached in time', error);
  if (code === 'closed')
    return new EngineError('unavailable', 'The backend was closed.', {
      isCutOff: true,
      cause: error,
    });
  if (code === 'head_too_large') return unavailable('sent endless headers', error);
  if (code === 'not_http') return unavailable('answered with something that is not HTTP', error);
  if (code === 'ECONNREFUSED') return unavailable('is not listening', error);
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return unavailable('has a name that could not be looked up', error);
  if (typeof code === 'string' && /CERT|SIGNATURE|ISSUER/.test(code))
    return unavailable(`has a certificate that can't be trusted (${code})`, error);
  if (code === 'EPROTO' || code === 'ERR_SSL_WRONG_VERSION_NUMBER')
    return unavailable('does not speak TLS as its address says', error);
  return new EngineError('unavailable', 'The backend broke the connection.', {
    isBroken: true,
    cause: error,
  });
}

/** For the log. Bodies may echo what the user sent, so only names and sizes are kept. */
function describe(status: number, refusal: UpstreamRefusal | null): Error {
  const { type, code } = refusal ?? { type: null, code: null };
  return new Error(`status ${status}, type ${type ?? 'none'}, code ${code ?? 'none'}`);
}

/** The server's reason, as far as it tells nothing of where the server is or how it is entered. */
function withoutPlaces({ message }: UpstreamRefusal): string {
  return message
    .slice(0, 400)
    .replaceAll(/\b[a-z]+:\/\/\S+/gi, '…')
    .replaceAll(/\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b/g, '…')
    .replaceAll(/\b[\w-]+(\.[\w-]+)+\/\S+/g, '…')
    .replaceAll(/\b(localhost|[\w-]+(\.[\w-]+)+):\d+/gi, '…')
    .replaceAll(/\b(sk|mr|key|hf|Bearer)[-_ ][\w-]{8,}/gi, '…')
    .replaceAll(/(^|\s)(\/[\w.-]+){2,}/g, '$1…');
}

function toRetryAfterMs(headers: IncomingHttpHeaders): number | null {
  const precise = Number(headers['retry-after-ms'] || Number.NaN);
  if (precise >= 0) return Math.min(Math.ceil(precise), longestRetryAfterMs);
  const given = headers['retry-after'] || 'none';
  const seconds = Number(given);
  const ms = Number.isNaN(seconds) ? Date.parse(given) - Date.now() : seconds * 1000;
  return ms >= 0 ? Math.min(Math.ceil(ms), longestRetryAfterMs) : null;
}
