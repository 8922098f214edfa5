// A client's connection as ssh2 sees it. ssh2 deciphers and answers packet by packet in this process, whatever the
// client does with the answers. So its input arrives in small pieces, with turns for everything else between them,
// and a client that doesn't read the answers is disconnected.

import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { FairTurns } from '#lib/async/fair-turns.ts';

/** At most 450 packets, which take ssh2 some ten milliseconds. Smaller pieces would slow uploads down. */
const pieceBytes = 16 * 1024;
/** What channels send waits for the client, so this is more than all other answers that a client leaves unread. */
const maxUnreadBytes = 1024 * 1024;

export class PacedSocket extends Duplex {
  readonly #socket: Socket;
  readonly #takeTurn: (step: () => void) => void;
  #isWanted = false;
  #isWaiting = false;

  /** Connections of one `caller` share its turns. */
  constructor(socket: Socket, turns: FairTurns, caller: string) {
    // It buffers no input, because a client that closes destroys it together with what it holds.
    super({ allowHalfOpen: false, readableHighWaterMark: 0 });
    this.#socket = socket;
    this.#takeTurn = (step) => turns.add(caller, step);
    // Not 'data' and `pause()`, which don't hold back 'end' while a piece waits for its turn.
    socket.on('readable', () => this.#deliver());
    socket.on('end', () => this.push(null));
    socket.on('error', (error) => this.destroy(error));
    socket.on('close', () => this.destroy());
  }

  get remoteAddress() {
    return this.#socket.remoteAddress;
  }

  get remotePort() {
    return this.#socket.remotePort;
  }

  get remoteFamily() {
    return this.#socket.remoteFamily;
  }

  override _read() {
    this.#isWanted = true;
    this.#deliver();
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void) {
    this.#socket.write(chunk, done);
  }

  override _writev(
    chunks: readonly { chunk: Buffer }[],
    done: (error?: Error | null) => void,
  ): void {
    this.#socket.write(Buffer.concat(chunks.map(({ chunk }) => chunk)), done);
  }

  override _final(done: () => void) {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void) {
    this.#socket.destroy();
    done(error);
  }

  #deliver(): void {
    if (!this.#isWanted || this.#isWaiting) return;
    // Asks for more input, or for 'end' if there is none.
    if (this.#socket.readableLength === 0) return void this.#socket.read(0);
    this.#isWaiting = true;
    this.#takeTurn(() => {
      this.#isWaiting = false;
      if (this.destroyed) return;
      if (this.writableLength > maxUnreadBytes) {
        this.destroy(new Error('the client does not read'));
        return;
      }
      const piece = this.#socket.read(Math.min(pieceBytes, this.#socket.readableLength));
      if (piece !== null) this.#isWanted = this.push(piece);
      this.#deliver();
    });
  }
}
