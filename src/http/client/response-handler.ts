// The events of one request and its response. Every layer uses this interface, from the parser up to the reader
// of a stream; only `Control`, the object that steers the exchange, differs from layer to layer.

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
  /** Exactly one of `onEnd` and `onError` is called, once; neither if the handler's owner aborts the exchange. */
  onError(error: unknown): void;
}
