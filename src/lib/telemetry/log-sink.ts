// Writes log lines to standard error in blocks, at most 250 ms late. One write per line would cost as much as a
// small request. Lines are buffered here because sonic-boom measures its whole buffer again for each line, and
// as bytes because strings that live this long are promoted by the garbage collector.

import { pino } from 'pino';

export interface LogSink {
  write(line: string): void;
  /** Flushes synchronously. Nothing may be logged afterwards. */
  close(): void;
}

const blockBytes = 65_536;
const delayMs = 250;
/** UTF-8 bytes per UTF-16 code unit. */
const maxBytesPerUnit = 3;

export function createLogSink(): LogSink {
  const out = pino.destination({ dest: 2, sync: false });
  const block = Buffer.allocUnsafeSlow(blockBytes);
  let length = 0;
  let timer: NodeJS.Timeout | null = null;

  function flush(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (length === 0) return;
    const text = block.toString('utf8', 0, length);
    length = 0;
    out.write(text);
  }

  /** sonic-boom's own exit hook only writes what it was given before. */
  const flushSync = () => {
    flush();
    out.flushSync();
  };
  process.once('exit', flushSync);

  return {
    write(line) {
      if (line.length * maxBytesPerUnit > blockBytes - length) flush();
      if (line.length * maxBytesPerUnit > blockBytes) out.write(line);
      else length += block.write(line, length);
      if (length > 0) timer ??= setTimeout(flush, delayMs).unref();
    },
    close() {
      process.off('exit', flushSync);
      flushSync();
      out.destroy();
    },
  };
}
