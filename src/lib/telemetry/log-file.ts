// The log as a file in the data directory. When it is full it is renamed to `.1`, in place of the one before, so both
// together stay within the bound.

import { closeSync, existsSync, fstatSync, openSync, renameSync, write, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { LogOutput } from './log-sink.ts';

export const toLogFile = (dataDir: string) => join(dataDir, 'server.log');
export const toPreviousLogFile = (file: string) => `${file}.1`;

/** Opened by the first write: the data directory may not exist before. `maxBytes` is for both files together. */
export function createLogFile(file: string, maxBytes: number): LogOutput {
  let fd: number | null = null;
  let size = 0;

  /** Opens the file, and makes room for `bytes` more. */
  function prepare(bytes: number): number {
    if (fd !== null && size > 0 && size + bytes > maxBytes / 2) {
      // An administrator may have deleted it.
      if (existsSync(file)) renameSync(file, toPreviousLogFile(file));
      closeSync(fd);
      fd = null;
    }
    if (fd === null) {
      fd = openSync(file, 'a', 0o600);
      size = fstatSync(fd).size;
    }
    return fd;
  }

  return {
    write(block, done) {
      try {
        write(prepare(block.length), block, (error, written) => {
          if (error === null) size += written;
          done(error, written);
        });
      } catch (error) {
        done(error as Error, 0);
      }
    },
    writeSync(block) {
      const written = writeSync(prepare(block.length), block);
      size += written;
      return written;
    },
  };
}
