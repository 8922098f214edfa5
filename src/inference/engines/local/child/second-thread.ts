// The second thread of this process's pool. It takes samples beside the first one after a batch of
// several sequences, and is parked while a batch is computed: a sample is queued behind its batch
// and must not overtake it, and a single stream is slower if its batches move between threads.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, openSync, read, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EngineError } from '#inference/engine.ts';

export interface SecondThread {
  /** Until `release`, jobs that are queued after this call run one after the other. Does nothing if parked already. */
  park(): void;
  /** Lets both threads take what is queued. */
  release(): void;
}

/**
 * The pool must have two threads, because parking the only one would stop it. Throws an EngineError
 * if there is no FIFO to park at.
 */
export function createSecondThread(): SecondThread {
  const fifo = openFifo();
  const byte = Buffer.alloc(1);
  let isParked = false;
  function release(): void {
    if (isParked) writeSync(fifo, byte);
    isParked = false;
  }
  // An exit waits for the threads of the pool.
  process.once('exit', release);
  return {
    park() {
      if (isParked) return;
      isParked = true;
      // Reading an empty FIFO blocks one thread of the pool until `release` writes a byte.
      read(fifo, Buffer.alloc(1), 0, 1, null, () => {});
    },
    release,
  };
}

/** Node can't make a pipe of its own. Opened for both reading and writing, a FIFO needs no second process. */
function openFifo(): number {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-model-'));
  try {
    const path = join(folder, 'fifo');
    execFileSync('mkfifo', [path]);
    return openSync(path, 'r+');
  } catch (error) {
    // With a code, because a failure without one is blamed on the GPU, and the model would run on the CPU.
    throw new EngineError(
      'unavailable',
      `A model on a GPU needs the program mkfifo and a writable ${tmpdir()}: ${(error as Error).message}`,
      { code: 'no_fifo' },
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}
