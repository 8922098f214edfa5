// Errors that every API shares: authentication, malformed requests, rate limits. Each API renders a Refusal in
// its own error format. This file lists all of them.

export type RefusalCode =
  | 'no_credentials'
  | 'invalid_credentials'
  | 'forbidden'
  | 'unknown_url'
  | 'method_not_allowed'
  | 'invalid_http'
  | 'expectation_failed'
  | 'invalid_json'
  | 'invalid_body'
  | 'unsupported_media_type'
  | 'timed_out'
  | 'too_large'
  | 'rate_limited'
  | 'not_found'
  | 'conflict'
  | 'misdirected'
  | 'overloaded'
  | 'shutting_down'
  | 'database_unavailable'
  | 'disk_full'
  | 'internal';

const statuses: Record<RefusalCode, number> = {
  no_credentials: 401,
  invalid_credentials: 401,
  forbidden: 403,
  unknown_url: 404,
  method_not_allowed: 405,
  invalid_http: 400,
  expectation_failed: 417,
  invalid_json: 400,
  invalid_body: 400,
  unsupported_media_type: 415,
  timed_out: 408,
  too_large: 413,
  rate_limited: 429,
  not_found: 404,
  conflict: 409,
  misdirected: 421,
  overloaded: 503,
  shutting_down: 503,
  database_unavailable: 503,
  disk_full: 507,
  internal: 500,
};

export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly status: number;
  readonly retryAfterMs: number | null;
  /** The body member at fault, for `invalid_body`. */
  readonly param: string | null;

  constructor(
    code: RefusalCode,
    message: string,
    detail: { retryAfterMs?: number; param?: string; cause?: unknown } = {},
  ) {
    super(message, { cause: detail.cause });
    this.name = 'Refusal';
    this.code = code;
    this.status = statuses[code];
    this.retryAfterMs = detail.retryAfterMs ?? null;
    this.param = detail.param ?? null;
  }
}

export const noCredentials = () =>
  new Refusal(
    'no_credentials',
    'No API key was sent. Send it as "Authorization: Bearer <key>", as x-api-key, or as the user name of HTTP Basic.',
  );

export const invalidCredentials = (masked: string) =>
  new Refusal(
    'invalid_credentials',
    // LiteLLM and other clients recognise the first words.
    `Incorrect API key provided: ${masked}. It is wrong, revoked or expired. Create a new one in the dashboard.`,
  );

export const forbidden = (message: string) => new Refusal('forbidden', message);

export const unknownUrl = (method: string, path: string) =>
  new Refusal('unknown_url', `There is no ${method} ${path}. Check the path and the base URL.`);

export const methodNotAllowed = (method: string, path: string, allowed: string[]) =>
  new Refusal('method_not_allowed', `${path} accepts ${allowed.join(', ')}, not ${method}.`);

export const invalidJson = (reason: string) =>
  new Refusal('invalid_json', `The body is not valid JSON: ${reason}.`);

export const invalidBody = (message: string, param?: string) =>
  new Refusal('invalid_body', message, param === undefined ? {} : { param });

export const unsupportedMediaType = (sent: string | undefined) =>
  new Refusal(
    'unsupported_media_type',
    sent === undefined
      ? 'Send the body with "Content-Type: application/json"; the request has no content type.'
      : 'Send the body with "Content-Type: application/json", not as another type.',
  );

export const tooLarge = (limitBytes: number) =>
  new Refusal('too_large', `The body is over the limit of ${limitBytes} bytes.`);

export const tooManyValues = (limit: number) =>
  invalidBody(
    `The body has more than ${limit} JSON values, counted as commas and opening brackets. ` +
      'Send a smaller body.',
  );

export const overloaded = (message: string, retryAfterMs: number) =>
  new Refusal('overloaded', message, { retryAfterMs });

export const rateLimited = (message: string, retryAfterMs: number) =>
  new Refusal('rate_limited', message, { retryAfterMs });

export const notFound = (what: string) => new Refusal('not_found', `${what} does not exist.`);

export const deadLink = () =>
  new Refusal('not_found', 'This link was used or has expired. Ask for a new one.');

export const conflict = (message: string, param?: string) =>
  new Refusal('conflict', message, param === undefined ? {} : { param });

export const databaseUnavailable = (cause: unknown) =>
  new Refusal('database_unavailable', 'The database does not answer. Try again shortly.', {
    retryAfterMs: 2000,
    cause,
  });

export const isDatabaseUnavailable = (error: unknown): error is Refusal =>
  error instanceof Refusal && error.code === 'database_unavailable';

export const diskFull = (cause?: unknown) =>
  new Refusal('disk_full', 'The disk of the server is full. Its operator must free some space.', {
    cause,
  });

/** What a disk has, and what of it is not to be had. */
export interface DiskFigures {
  readonly freeGib: number;
  readonly reserveGib: number;
  /** For machines and filesystems that are not created yet. */
  readonly promisedGib: number;
}

export function describeDisk({ freeGib, reserveGib, promisedGib }: DiskFigures): string {
  const free = freeGib < 10 ? `${Math.round(freeGib * 1024)} MiB` : `${Math.floor(freeGib)} GiB`;
  const promised =
    promisedGib > 0 ? `, ${promisedGib} GiB are promised to what is being created` : '';
  return `${free} are free${promised}, and ${reserveGib} GiB stay reserved (cloud.disk_reserve_gib)`;
}

export const diskReserveReached = (disk: DiskFigures) =>
  new Refusal(
    'disk_full',
    `The disk of the server is almost full: ${describeDisk(disk)}. Delete filesystems, or ask its operator to free some space.`,
  );

export const internal = (cause: unknown) =>
  new Refusal('internal', 'Internal error. Find the request id in the server log.', {
    cause,
  });
