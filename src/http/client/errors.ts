// Errors of the HTTP client. Errors of the operating system and of TLS are passed on with their own codes.

/**
 * - `connect_timeout`: no connection within the pool's `connectMs`.
 * - `closed`: the pool was closed.
 * - `cut_off`: the server closed the connection before the end of the response.
 * - `stale_connection`: the server closed a reused connection before the first byte of the response. The request
 *   may be sent again if the server has closed it unread; `cause` is what ended the connection.
 * - `head_too_large`: headers or trailers exceed `maxHeadBytes`.
 * - `not_http`: the bytes received are not a valid HTTP/1.1 response, or could be read in two ways.
 */
export type HttpClientErrorCode =
  | 'connect_timeout'
  | 'closed'
  | 'cut_off'
  | 'stale_connection'
  | 'head_too_large'
  | 'not_http';

export class HttpClientError extends Error {
  readonly code: HttpClientErrorCode;

  constructor(code: HttpClientErrorCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'HttpClientError';
    this.code = code;
  }
}
