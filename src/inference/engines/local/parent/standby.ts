// The next child process of a model that sleeps, started ahead. It has no model yet, so that a wake costs the load alone:
// the start of a process takes longer than the load of a small model.

import type { ModelProcess, ModelProcessEvents, startModelProcess } from './model-process.ts';

export interface Standby {
  /** Starts a process unless one is ready. */
  prepare(): void;
  /** Returns the process that was started ahead, or starts one. */
  take(events: ModelProcessEvents): ModelProcess;
  /** Resolves when a process that was not taken has exited. */
  close(): Promise<void>;
}

interface Prepared {
  readonly process: ModelProcess;
  /** Null until it is taken. */
  events: ModelProcessEvents | null;
}

export function createStandby(start: typeof startModelProcess): Standby {
  let prepared: Prepared | null = null;
  return {
    prepare() {
      if (prepared !== null) return;
      const mine: Prepared = {
        events: null,
        process: start({
          message: (message) => mine.events?.message(message),
          output: (line) => mine.events?.output(line),
          exit(reason, expected) {
            if (prepared === mine) prepared = null;
            mine.events?.exit(reason, expected);
          },
        }),
      };
      prepared = mine;
    },
    take(events) {
      if (prepared === null) return start(events);
      const { process } = prepared;
      prepared.events = events;
      prepared = null;
      return process;
    },
    async close() {
      await prepared?.process.close();
    },
  };
}
