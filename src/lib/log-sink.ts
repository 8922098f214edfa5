// Where log lines go: standard error, in blocks, a quarter of a second late at most. One write for each would
// cost as much as a small request. They are gathered here, because sonic-boom measures all it holds anew for
// each line.

import { pino } from 'pino';

export interface LogSink {
  write(line: string): void;
  /** Writes what is there, at once. Nothing may be logged afterwards. */
  close(): void;
}

const blockLength = 65_536;
const delayMs = 250;

export function createLogSink(): LogSink {
  const out = pino.destination({ dest: 2, sync: false });
  const lines: string[] = [];
  let length = 0;
  let timer: NodeJS.Timeout | null = null;

  function pass(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (lines.length === 0) return;
    const block = lines.join('');
    lines.length = 0;
    length = 0;
    out.write(block);
  }

  /** Its own hook writes what it was given. */
  const passLast = () => {
    pass();
    out.flushSync();
  };
  process.once('exit', passLast);

  return {
    write(line) {
      lines.push(line);
      length += line.length;
      if (length >= blockLength) pass();
      else timer ??= setTimeout(pass, delayMs).unref();
    },
    close() {
      process.off('exit', passLast);
      passLast();
      out.destroy();
    },
  };
}
