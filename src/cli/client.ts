// Calls the server's public APIs, as any other client would.

import { type Credentials, loadCredentials } from './credentials.ts';
import { CliError } from './output.ts';

export interface Client {
  readonly url: string;
  get<Answer>(path: string): Promise<Answer>;
  /** For what is not JSON. */
  download(path: string): Promise<Response>;
  post<Answer>(path: string, body?: unknown): Promise<Answer>;
  patch<Answer>(path: string, body: unknown): Promise<Answer>;
  put<Answer>(path: string, body: unknown): Promise<Answer>;
  delete<Answer>(path: string): Promise<Answer>;
}

const timeoutMs = 60_000;
const maxWaits = 5;
const maxWaitSeconds = 15;

/** `session`: the dashboard's endpoints need a sign-in. `any`: a key will do. */
export function createClient(needs: 'session' | 'any', credentials = loadCredentials()): Client {
  const authorization = authorize(needs, credentials);
  const ask = async (method: string, path: string, body?: unknown): Promise<Response> => {
    const response = await sendPatiently(() =>
      send(credentials.url, method, path, authorization, body),
    );
    if (response.ok) return response;
    throw new CliError(explain(response, await response.text()));
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
  };
}

/** The cloud API takes one request a second, and some commands need two or three. */
async function sendPatiently(sendOnce: () => Promise<Response>): Promise<Response> {
  for (let wait = 0; ; wait++) {
    const response = await sendOnce();
    const seconds = Number(response.headers.get('retry-after'));
    const worthIt = response.status === 429 && seconds > 0 && seconds <= maxWaitSeconds;
    if (!worthIt || wait >= maxWaits) return response;
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
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      body: body === undefined ? null : JSON.stringify(body),
      signal: AbortSignal.timeout(timeoutMs),
    });
  } catch (error) {
    const { cause } = error as { cause?: { code?: string } };
    throw new CliError(
      `${url} does not answer (${cause?.code ?? (error as Error).name}). ` +
        'Is the server running? Set MILLRACE_URL if it is elsewhere.',
    );
  }
}

export function explain(response: Response, text: string): string {
  const id = response.headers.get('x-request-id');
  const suffix = response.status >= 500 && id !== null ? ` (request ${id})` : '';
  try {
    const { error } = JSON.parse(text) as { error: { message: string; suggestion?: string } };
    return `${error.message}${error.suggestion ? ` ${error.suggestion}` : ''}${suffix}`;
  } catch {
    return `The server answered ${response.status}${suffix}.`;
  }
}

function authorize(
  needs: 'session' | 'any',
  { session, apiKey }: Credentials,
): Record<string, string> {
  if (needs === 'any' && apiKey !== null) return { authorization: `Bearer ${apiKey}` };
  if (session !== null) return { cookie: `millrace_session=${session}` };
  throw new CliError(
    needs === 'any'
      ? 'Not signed in. Run `millrace login`, or set MILLRACE_API_KEY.'
      : 'Not signed in. Run `millrace login`.',
  );
}
