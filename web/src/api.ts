// Requests to this server with the session cookie. Every failure becomes an ApiError that a page can show: all
// three APIs put the message in `error.message`, and every response has a request ID.

export class ApiError extends Error {
  /** The HTTP status; 0 if there was no response. */
  readonly status: number;
  readonly code: string | null;
  readonly suggestion: string | null;
  /** The member of the request that the error is about, e.g. `limits.monthly_budget`; null if there is none. */
  readonly param: string | null;
  readonly requestId: string | null;

  constructor(
    message: string,
    detail: {
      status: number;
      code?: string;
      suggestion?: string;
      param?: string | null;
      requestId?: string | null;
    },
  ) {
    super(message);
    this.name = 'ApiError';
    this.status = detail.status;
    this.code = detail.code ?? null;
    this.suggestion = detail.suggestion ?? null;
    this.param = detail.param ?? null;
    this.requestId = detail.requestId ?? null;
  }
}

export interface List<T> {
  data: T[];
}

/** `next` is the cursor of the next page; null on the last page. */
export type Page<T> = List<T> & { next: string | null };

const json = { 'content-type': 'application/json' };

export const get = <T>(path: string) => call<T>(path, { method: 'GET' });

/** Reads all pages of a list, for views that need the whole of it. */
export async function getAll<T>(path: string): Promise<List<T>> {
  const data: T[] = [];
  for (let before = ''; ; ) {
    const page = await get<Page<T>>(`${path}?limit=500${before}`);
    data.push(...page.data);
    if (page.next === null) return { data };
    before = `&before=${encodeURIComponent(page.next)}`;
  }
}

export const post = <T>(path: string, body?: unknown) =>
  call<T>(path, {
    method: 'POST',
    ...(body === undefined ? {} : { headers: json, body: JSON.stringify(body) }),
  });
export const put = <T>(path: string, body: unknown) =>
  call<T>(path, { method: 'PUT', headers: json, body: JSON.stringify(body) });
export const patch = <T>(path: string, body: unknown) =>
  call<T>(path, { method: 'PATCH', headers: json, body: JSON.stringify(body) });
export const remove = <T>(path: string) => call<T>(path, { method: 'DELETE' });

async function call<T>(path: string, init: RequestInit): Promise<T> {
  const response = await send(path, init);
  return (await response.json()) as T;
}

/** Resolves to a successful response whose body has not been read. Throws an ApiError otherwise. */
export async function send(path: string, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new ApiError('Can’t reach the server. Check that it is running, then try again.', {
      status: 0,
    });
  }
  if (!response.ok) throw await toError(response);
  return response;
}

async function toError(response: Response): Promise<ApiError> {
  const { status } = response;
  const requestId = response.headers.get('x-request-id');
  const body = (await response.json().catch(() => null)) as {
    error?: { message?: string; code?: string; suggestion?: string; param?: string | null };
  } | null;
  const { message = `The server responded with status ${status}.`, ...rest } = body?.error ?? {};
  return new ApiError(message, { ...rest, status, requestId });
}
