// An answer written to a socket as HTTP/1.1, the head and what follows in one write where both are there.

import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { HeaderList } from '../header-list.ts';
import { lastChunk, type Reply, toChunk } from '../reply.ts';

const forbidden = /[^\t\x20-\x7e\x80-\xff]/;

let dateSecond = 0;
let dateLine = '';

function writeDate(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== dateSecond) {
    dateSecond = second;
    dateLine = `Date: ${new Date(second * 1000).toUTCString()}\r\n`;
  }
  return dateLine;
}

export class SocketReply implements Reply {
  status = 0;
  isGone = false;
  readonly #socket: Socket;
  /** What every answer of the server says of its connection. */
  readonly #keepAlive: string;
  readonly #onEnd: () => void;
  #head = '';
  #isOver = false;
  #gone: (() => void)[] = [];
  #room: (() => void)[] = [];

  constructor(socket: Socket, keepAlive: string, onEnd: () => void) {
    this.#socket = socket;
    this.#keepAlive = keepAlive;
    this.#onEnd = onEnd;
  }

  get isBegun(): boolean {
    return this.status !== 0;
  }

  get isFull(): boolean {
    return this.#socket.writableNeedDrain;
  }

  onGone(listener: () => void): void {
    if (this.isGone) listener();
    else this.#gone.push(listener);
  }

  onRoom(listener: () => void): void {
    this.#room.push(listener);
  }

  send(status: number, headers: HeaderList, text: string, isAscii: boolean): void {
    this.#start(status, headers, '');
    if (isAscii) this.#write(text, 'latin1');
    else {
      this.#socket.cork();
      this.#write('', 'latin1');
      this.#write(text, 'utf8');
      this.#socket.uncork();
    }
    this.#finish();
  }

  begin(status: number, headers: HeaderList): void {
    this.#start(status, headers, 'Transfer-Encoding: chunked\r\n');
  }

  write(block: string): void {
    this.#write(toChunk(block), 'latin1');
  }

  end(block: string): void {
    this.#write(toChunk(block) + lastChunk, 'latin1');
    this.#finish();
  }

  cut(): void {
    // The connection may be at another one by now.
    if (!this.#isOver) this.#socket.destroy();
  }

  /** The socket has room again. */
  drained(): void {
    this.#tell(this.#room.splice(0));
  }

  /** The socket is closed. */
  closed(): void {
    this.isGone = true;
    this.#tell(this.#room.splice(0));
    if (!this.#isOver) this.#tell(this.#gone.splice(0));
  }

  #tell(listeners: (() => void)[]): void {
    for (const listener of listeners) listener();
  }

  #start(status: number, headers: HeaderList, framing: string): void {
    let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n`;
    for (let at = 0; at < headers.length; at += 2) {
      const value = headers[at + 1];
      if (typeof value === 'string' && forbidden.test(value))
        throw new Error(`the header ${headers[at]} cannot be sent`);
      head += `${headers[at]}: ${value}\r\n`;
    }
    this.#head = `${head}${writeDate()}${this.#keepAlive}${framing}\r\n`;
    this.status = status;
  }

  #write(text: string, encoding: 'latin1' | 'utf8'): void {
    const head = this.#head;
    this.#head = '';
    this.#socket.write(head + text, encoding);
  }

  #finish(): void {
    this.#isOver = true;
    this.#onEnd();
  }
}
