// A file that is downloaded in pieces, perhaps over several runs of the program, and the hash of what it has so far. A
// download that fails continues where it stopped.

import { createHash, type Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** Called with the number of bytes of the file that are on disk and hashed. */
export type Progress = (bytes: number) => void;

export interface RetryRules {
  /** Delay after the first failure. It doubles with each further one, up to `maxDelayMs`. */
  readonly delayMs: number;
  readonly maxDelayMs: number;
  /** Maximum consecutive failures. A failure after progress counts as the first. */
  readonly maxFailures: number;
}

/** Where the bytes of a file come from. */
export interface FileSource {
  /** Opens the file at `offset`. `from` is 0 if the source can't resume and sends all of it. */
  open(offset: number): Promise<{ from: number; body: AsyncIterable<Uint8Array> }>;
  toTooLarge(): Error;
  toEndedEarly(bytes: number): Error;
  /** Milliseconds to wait at least before the next attempt; null if the error is final. */
  retryAfterMs(error: unknown): number | null;
}

export interface HashOptions {
  readonly algorithm: 'sha1' | 'sha256' | 'sha512';
  /** Hashed before the content. */
  readonly prefix?: string;
}

const readBytes = 1024 * 1024;

/** A partial file and the hash of its content, which grow together. */
export class GrowingFile {
  readonly size: number;
  bytes = 0;
  readonly #handle: FileHandle;
  readonly #progress: Progress;
  readonly #newHash: () => Hash;
  #hash: Hash;

  constructor(
    handle: FileHandle,
    size: number,
    { algorithm, prefix = '', progress }: HashOptions & { progress: Progress },
  ) {
    this.#handle = handle;
    this.size = size;
    this.#progress = progress;
    this.#newHash = () => createHash(algorithm).update(prefix);
    this.#hash = this.#newHash();
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

  /** Downloads what is missing. Throws the source's error once it is final or came too often. */
  async fetchRest(source: FileSource, retry: RetryRules, signal: AbortSignal): Promise<void> {
    for (let failures = 0; this.bytes < this.size; ) {
      const before = this.bytes;
      try {
        await this.#fetch(source);
      } catch (error) {
        signal.throwIfAborted();
        const atLeastMs = source.retryAfterMs(error);
        failures = this.bytes > before ? 1 : failures + 1;
        if (atLeastMs === null || failures >= retry.maxFailures) throw error;
        const delayMs = Math.max(retry.delayMs * 2 ** (failures - 1), atLeastMs);
        await sleep(Math.min(delayMs, retry.maxDelayMs), undefined, { signal });
      }
    }
  }

  async #fetch(source: FileSource): Promise<void> {
    const { from, body } = await source.open(this.bytes);
    if (from !== this.bytes) await this.reset();
    for await (const chunk of body) {
      if (this.bytes + chunk.length > this.size) throw source.toTooLarge();
      await this.#append(chunk);
    }
    if (this.bytes < this.size) throw source.toEndedEarly(this.bytes);
  }

  async #append(chunk: Uint8Array): Promise<void> {
    // A file opened for appending is always written at its end.
    for (let written = 0; written < chunk.length; ) {
      written += (await this.#handle.write(chunk, written)).bytesWritten;
    }
    this.#count(chunk);
  }

  async reset(): Promise<void> {
    await this.#handle.truncate(0);
    this.#hash = this.#newHash();
    this.bytes = 0;
    this.#progress(0);
  }

  digest(encoding: 'hex' | 'base64'): string {
    return this.#hash.copy().digest(encoding);
  }

  #count(chunk: Uint8Array): void {
    this.#hash.update(chunk);
    this.bytes += chunk.length;
    this.#progress(this.bytes);
  }
}
