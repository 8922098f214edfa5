// An answer on its way to a client, whoever took the request: Node's HTTP server, or a connection of our own.

import type { ServerResponse } from 'node:http';
import type { HeaderList } from './header-list.ts';

export interface Reply {
  /** Of use once it has begun. */
  readonly status: number;
  readonly isBegun: boolean;
  /** Nobody reads it any more. */
  readonly isGone: boolean;
  /** More was written than the client has taken. */
  readonly isFull: boolean;
  /** Is called when the client leaves before it has all; at once where it has left. */
  onGone(listener: () => void): void;
  /** Is called once, when it is not full any more, or the client has left. */
  onRoom(listener: () => void): void;
  /** All of it. Headers say how long it is. */
  send(status: number, headers: HeaderList, text: string, isAscii: boolean): void;
  /** What follows comes in blocks. */
  begin(status: number, headers: HeaderList): void;
  /** Every character is one byte. */
  write(block: string): void;
  end(block: string): void;
  /** The client sees it break off. */
  cut(): void;
}

/** In HTTP/1.1 the client is told the length of each block. */
export const toChunk = (block: string) =>
  block === '' ? '' : `${block.length.toString(16)}\r\n${block}\r\n`;

export const lastChunk = '0\r\n\r\n';

export class NodeReply implements Reply {
  readonly #response: ServerResponse;
  #isChunked = false;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get status(): number {
    return this.#response.statusCode;
  }

  get isBegun(): boolean {
    return this.#response.headersSent;
  }

  get isGone(): boolean {
    return this.#response.destroyed;
  }

  get isFull(): boolean {
    return this.#response.writableNeedDrain;
  }

  onGone(listener: () => void): void {
    const response = this.#response;
    if (response.destroyed) listener();
    else response.on('close', () => response.writableFinished || listener());
  }

  onRoom(listener: () => void): void {
    const response = this.#response;
    function go(): void {
      response.off('drain', go).off('close', go);
      listener();
    }
    response.on('drain', go).on('close', go);
  }

  send(status: number, headers: HeaderList, text: string, isAscii: boolean): void {
    this.#response.writeHead(status, headers).end(text, isAscii ? 'latin1' : 'utf8');
  }

  begin(status: number, headers: HeaderList): void {
    const response = this.#response;
    response.writeHead(status, headers);
    joinHeader(response);
    // Framed here instead of by Node, which would make four writes of each block.
    this.#isChunked = response.chunkedEncoding;
    response.chunkedEncoding = false;
  }

  write(block: string): void {
    this.#response.write(this.#isChunked ? toChunk(block) : block, 'latin1');
  }

  end(block: string): void {
    this.#response.end(this.#isChunked ? toChunk(block) + lastChunk : block, 'latin1');
  }

  cut(): void {
    this.#response.destroy();
  }
}

/**
 * Node keeps the text of the headers as the eighty pieces it was put together from, for as long as the answer
 * takes. Looking into it makes one piece of them.
 */
function joinHeader(response: ServerResponse): void {
  (response as { _header?: string })._header?.charCodeAt(0);
}
