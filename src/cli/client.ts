// Calls the server's public APIs, as any other client would.

import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { findMemberProblem, toFieldName, toMemberPath } from '#lib/schema/problem-words.ts';
import millrace from '../../package.json' with { type: 'json' };
import { type Credentials, loadCredentials } from './credentials.ts';
import { CliError } from './output.ts';

export interface Client {
  readonly url: string;
  get<Answer>(path: string): Promise<Answer>;
  /** Returns the response as it is, for one that is not JSON. */
  download(path: string): Promise<Response>;
  post<Answer>(path: string, body?: unknown): Promise<Answer>;
  patch<Answer>(path: string, body: unknown): Promise<Answer>;
  put<Answer>(path: string, body: unknown): Promise<Answer>;
  delete<Answer>(path: string): Promise<Answer>;
  /** Posts without a timeout, for what may take many minutes: a large upload, or a long operation. */
  postLong<Answer>(path: string, body: LongBody): Promise<Answer>;
  /** Gets without a timeout, and returns the body as it arrives. */
  getStream(path: string): Promise<Streamed>;
  /** Posts JSON without a timeout and returns the body as it arrives. Aborting the signal rejects with its reason. */
  postStream(path: string, body: unknown, signal: AbortSignal): Promise<Streamed>;
}

export interface LongBody {
  readonly type: string;
  readonly bytes: number;
  readonly content: Readable | string;
}

export interface Streamed {
  readonly headers: Headers;
  readonly body: Readable;
}

/** The server understood the request and refused it. */
export class RefusedError extends CliError {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const timeoutMs = 60_000;
const maxRetries = 5;
const maxRetryAfterSeconds = 15;

/** `session` requires a sign-in, as the dashboard's endpoints do. `any` also accepts an API key. */
export function createClient(needs: 'session' | 'any', credentials = loadCredentials()): Client {
  const authorization = authorize(needs, credentials);
  const ask = async (method: string, path: string, body?: unknown): Promise<Response> => {
    const response = await sendWithRetry(() =>
      send(credentials.url, method, path, authorization, body),
    );
    if (response.ok) return response;
    const isOver = response.status === 401 && 'cookie' in authorization;
    const reason = explain(response, await response.text());
    throw new RefusedError(
      response.status,
      isOver ? 'Your session has ended. Run `millrace login`.' : reason,
    );
  };
  const call = async <Answer>(method: string, path: string, body?: unknown): Promise<Answer> =>
    JSON.parse(await (await ask(method, path, body)).text()) as Answer;
  return {
    url: credentials.url,
    get: (path) => call('GET', path),
    download: (path) => ask('GET', path),
    post: (path, body) => call('POST', path, body ?? {}),
    patch: (path, body) => call('PATCH', path, body),
    put: (path, body) => call('PUT', path, body),
    delete: (path) => call('DELETE', path),
    async postLong<Answer>(path: string, body: LongBody) {
      const { body: answer } = await sendLong(credentials.url, path, authorization, body);
      const whole = await text(answer).catch((error: unknown) => {
        throw unreachable(credentials.url, error);
      });
      return JSON.parse(whole) as Answer;
    },
    getStream: (path) => sendLong(credentials.url, path, authorization, null),
    postStream(path, body, signal) {
      const content = JSON.stringify(body);
      const bytes = Buffer.byteLength(content);
      const long = { type: 'application/json', bytes, content, signal };
      return sendLong(credentials.url, path, authorization, long);
    },
  };
}

/** The cloud API allows one request per second, and some commands need two or three. */
async function sendWithRetry(sendOnce: () => Promise<Response>): Promise<Response> {
  for (let retry = 0; ; retry++) {
    const response = await sendOnce();
    const seconds = Number(response.headers.get('retry-after'));
    const mayRetry = response.status === 429 && seconds > 0 && seconds <= maxRetryAfterSeconds;
    if (!mayRetry || retry >= maxRetries) return response;
    await response.body?.cancel();
    await new Promise((done) => setTimeout(done, seconds * 1000));
  }
}

export async function send(
  url: string,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: unknown,
): Promise<Response> {
  try {
    return await fetch(`${url}${path}`, {
      method,
      headers: {
        ...headers,
        // The list of sessions in the dashboard recognises it.
        'user-agent': `millrace-cli/${millrace.version}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    });
  } catch (error) {
    throw unreachable(url, error);
  }
}

function unreachable(url: string, error: unknown): CliError {
  const { cause, code, name } = error as Error & { cause?: { code?: string }; code?: string };
  return new CliError(
    `Can't reach the server at ${url} (${cause?.code ?? code ?? name}). ` +
      'Check that it is running, or set MILLRACE_URL or --context to another one.',
  );
}

/** Uses undici directly: the built-in fetch times out after five minutes without a response. */
async function sendLong(
  url: string,
  path: string,
  headers: Record<string, string>,
  long: (LongBody & { readonly signal?: AbortSignal }) | null,
): Promise<Streamed> {
  const { request } = await import('undici');
  const signal = long?.signal;
  const described = long && { 'content-type': long.type, 'content-length': `${long.bytes}` };
  const answer = await request(`${url}${path}`, {
    method: long === null ? 'GET' : 'POST',
    headers: { ...headers, ...described },
    body: long?.content ?? null,
    headersTimeout: 0,
    bodyTimeout: 0,
    ...(signal && { signal }),
  }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw unreachable(url, error);
  });
  const { statusCode: status, body } = answer;
  const response = new Response(null, { status, headers: toHeaders(answer.headers) });
  if (response.ok) return { headers: response.headers, body };
  throw new RefusedError(status, explain(response, await body.text()));
}

const toHeaders = (headers: Record<string, string | string[] | undefined>) =>
  Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);

export function explain(response: Response, text: string): string {
  const id = response.headers.get('x-request-id');
  const suffix = response.status >= 500 && id !== null ? ` (request ${id})` : '';
  try {
    const { error } = JSON.parse(text) as { error: { message: string; suggestion?: string } };
    return `${toSentences(error)}${suffix}`;
  } catch {
    return `The server responded with status ${response.status}${suffix}.`;
  }
}

/** Suggestions that say nothing to a person who typed a command. */
const idleSuggestions: readonly string[] = [
  'Retry the request after fixing the request parameters.',
  'Check the ID and try again.',
];

function toSentences({ message, suggestion }: { message: string; suggestion?: string }): string {
  const problem = findMemberProblem(message);
  if (problem !== undefined) {
    const name = toFieldName(toMemberPath(problem.member));
    return /^This /.test(problem.text)
      ? problem.text.replace('This', name)
      : `${name}: ${problem.text}`;
  }
  if (!suggestion) return message;
  // Messages of the cloud API need not end in a period, as on Lambda Cloud.
  const sentence = message.replace(/[^.!?]$/, '$&.');
  return idleSuggestions.includes(suggestion) ? sentence : `${sentence} ${suggestion}`;
}

function authorize(
  needs: 'session' | 'any',
  { session, apiKey }: Credentials,
): Record<string, string> {
  if (needs === 'any' && apiKey !== null) return { authorization: `Bearer ${apiKey}` };
  // Both names: only the server knows whether browsers reach it by https.
  if (session !== null)
    return { cookie: `millrace_session=${session}; __Host-millrace_session=${session}` };
  throw new CliError(
    needs === 'any'
      ? 'Not signed in. Run `millrace login`, or set MILLRACE_API_KEY.'
      : 'Not signed in. Run `millrace login`.',
  );
}
