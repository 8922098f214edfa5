// What goes wrong between us and a server, besides what the operating system and TLS say by codes of their own.

export type Http1Code = 'connect_timeout' | 'closed' | 'cut_off' | 'head_too_large' | 'not_http';

export class Http1Error extends Error {
  readonly code: Http1Code;

  constructor(code: Http1Code, message: string) {
    super(message);
    this.name = 'Http1Error';
    this.code = code;
  }
}
