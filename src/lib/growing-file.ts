// A file that is downloaded in pieces, perhaps over several runs of the program, and the hash of what it has so far.

import { createHash, type Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';

/** Called with the number of bytes of the file that are on disk and hashed. */
export type Progress = (bytes: number) => void;

const readBytes = 1024 * 1024;

/** A partial file and the hash of its content, which grow together. */
export class GrowingFile {
  readonly size: number;
  bytes = 0;
  readonly #handle: FileHandle;
  readonly #progress: Progress;
  readonly #algorithm: string;
  #hash: Hash;

  constructor(
    handle: FileHandle,
    size: number,
    { algorithm, progress }: { algorithm: 'sha256' | 'sha512'; progress: Progress },
  ) {
    this.#handle = handle;
    this.size = size;
    this.#progress = progress;
    this.#algorithm = algorithm;
    this.#hash = createHash(algorithm);
  }

  /** Hashes what an earlier run left. Returns the number of bytes. */
  async load(signal: AbortSignal): Promise<number> {
    if ((await this.#handle.stat()).size > this.size) await this.#handle.truncate(0);
    const buffer = Buffer.allocUnsafe(readBytes);
    for (;;) {
      signal.throwIfAborted();
      const { bytesRead } = await this.#handle.read(buffer, 0, readBytes, this.bytes);
      if (bytesRead === 0) return this.bytes;
      this.#count(buffer.subarray(0, bytesRead));
    }
  }

  async append(chunk: Buffer): Promise<void> {
    // A file opened for appending is always written at its end.
    for (let written = 0; written < chunk.length; ) {
      written += (await this.#handle.write(chunk, written)).bytesWritten;
    }
    this.#count(chunk);
  }

  async reset(): Promise<void> {
    await this.#handle.truncate(0);
    this.#hash = createHash(this.#algorithm);
    this.bytes = 0;
    this.#progress(0);
  }

  digest(encoding: 'hex' | 'base64'): string {
    return this.#hash.copy().digest(encoding);
  }

  #count(chunk: Buffer): void {
    this.#hash.update(chunk);
    this.bytes += chunk.length;
    this.#progress(this.bytes);
  }
}
