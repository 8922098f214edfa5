// Where log lines go: standard error, in blocks, a quarter of a second late at most. One write for each would
// cost as much as a small request. They are gathered here, because sonic-boom measures all it holds anew for
// each line, and as bytes, because strings that are kept for so long are a burden to the garbage collector.

import { pino } from 'pino';

export interface LogSink {
  write(line: string): void;
  /** Writes what is there, at once. Nothing may be logged afterwards. */
  close(): void;
}

const blockBytes = 65_536;
const delayMs = 250;
/** A character takes three bytes at most. */
const widest = 3;

export function createLogSink(): LogSink {
  const out = pino.destination({ dest: 2, sync: false });
  const block = Buffer.allocUnsafeSlow(blockBytes);
  let length = 0;
  let timer: NodeJS.Timeout | null = null;

  function pass(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (length === 0) return;
    const text = block.toString('utf8', 0, length);
    length = 0;
    out.write(text);
  }

  /** Its own hook writes what it was given. */
  const passLast = () => {
    pass();
    out.flushSync();
  };
  process.once('exit', passLast);

  return {
    write(line) {
      if (line.length * widest > blockBytes - length) pass();
      if (line.length * widest > blockBytes) out.write(line);
      else length += block.write(line, length);
      if (length > 0) timer ??= setTimeout(pass, delayMs).unref();
    },
    close() {
      process.off('exit', passLast);
      passLast();
      out.destroy();
    },
  };
}
