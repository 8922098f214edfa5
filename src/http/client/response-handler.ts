// The events of one request and its response, and the errors that it can end with. Every layer uses
// this interface, from the parser up to the reader of a stream. Only `Control`, the object that
// steers the exchange, differs from layer to layer.

import type { IncomingHttpHeaders } from 'node:http';

export interface ResponseHandler<Control> {
  /**
   * The request is being written to a connection. Called again if the request is retried. `control` pauses, resumes
   * or aborts the response.
   */
  onSent(control: Control): void;
  /** The headers are shared between responses and must not be modified. */
  onHead(status: number, headers: Readonly<IncomingHttpHeaders>): void;
  /** The bytes are valid until this returns: copy what you keep. */
  onBody(bytes: Buffer): void;
  onEnd(): void;
  /**
   * Exactly one of `onEnd` and `onError` is called, once; neither if the handler's owner aborts the
   * exchange. Errors of the operating system and of TLS are passed on with their own codes; all
   * others are an HttpClientError.
   */
  onError(error: unknown): void;
}

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
