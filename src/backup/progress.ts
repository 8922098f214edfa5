// The progress of work that takes long, and how it is stopped.

export interface Watcher {
  /** Called often; `total` is in the same unit as `done`, bytes. */
  readonly onProgress: (done: number, total: number, label: string) => void;
  /** Aborted by a signal to the process: temporary files are removed before the work ends. */
  readonly signal: AbortSignal;
}

/** Adds up the bytes of one step, and ends the step when it is aborted. */
export function countBytes(watcher: Watcher, total: number, label: string) {
  let done = 0;
  return (bytes: number): void => {
    watcher.signal.throwIfAborted();
    // What surrounds the files in an archive is not part of the total.
    done = Math.min(total, done + bytes);
    watcher.onProgress(done, total, label);
  };
}
