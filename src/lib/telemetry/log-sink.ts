// Writes log lines to standard error and to a file in blocks, at most 250 ms late. One write per line would cost as
// much as a small request. Lines are buffered as bytes, because strings that live this long are promoted by the garbage
// collector. Not by sonic-boom: it has no bound by default, and on a full disk its flush never returns.

import { write, writeSync } from 'node:fs';

export interface LogSink {
  write(line: string): void;
  /** Flushes synchronously. Nothing may be logged afterwards. */
  close(): void;
}

/** Takes blocks of whole lines, one at a time. */
export interface LogOutput {
  write(block: Buffer, done: (error: Error | null, written: number) => void): void;
  /** Returns the number of bytes written. */
  writeSync(block: Buffer): number;
  /** Changes a block before it is queued, for people to read. */
  readonly format?: (block: Buffer) => Buffer;
}

const stderr = 2;
const blockBytes = 65_536;
const delayMs = 250;
/** UTF-8 bytes per UTF-16 code unit. */
const maxBytesPerUnit = 3;
/** Maximum blocks that wait for a disk that is full or a reader that is slow. Later lines are lost, and counted. */
const maxBlocks = 64;
const retryMs = 100;
/** How often the last flush waits `retryMs` for a slow reader. */
const maxLastRetries = 20;

export const stderrOutput: LogOutput = {
  write: (block, done) => write(stderr, block, done),
  writeSync: (block) => writeSync(stderr, block),
};

export function createLogSink(outputs: readonly LogOutput[] = [stderrOutput]): LogSink {
  const block = Buffer.allocUnsafeSlow(blockBytes);
  const queues = outputs.map(createQueue);
  let length = 0;
  let timer: NodeJS.Timeout | null = null;

  function flush(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (length > 0) queue(Buffer.from(block.subarray(0, length)));
    length = 0;
  }

  function queue(bytes: Buffer): void {
    for (const one of queues) one.add(bytes);
  }

  const flushSync = () => {
    flush();
    for (const one of queues) one.flushSync();
  };
  process.once('exit', flushSync);

  return {
    write(line) {
      if (line.length * maxBytesPerUnit > blockBytes - length) flush();
      if (line.length * maxBytesPerUnit > blockBytes) queue(Buffer.from(line));
      else length += block.write(line, length);
      if (length > 0) timer ??= setTimeout(flush, delayMs).unref();
    },
    close() {
      process.off('exit', flushSync);
      flushSync();
    },
  };
}

/** Each output has its own: a slow reader of standard error does not hold up the file. */
function createQueue(output: LogOutput) {
  const format = output.format ?? ((block: Buffer) => block);
  const waiting: Buffer[] = [];
  let isWriting = false;
  let lostBytes = 0;

  function send(): void {
    const [first] = waiting;
    if (isWriting || first === undefined) return;
    isWriting = true;
    output.write(first, (error, written) => {
      isWriting = false;
      // The disk is full, or the reader is slow.
      if (error !== null) return void setTimeout(send, retryMs).unref();
      dropWritten(waiting, written);
      send();
    });
  }

  return {
    add(block: Buffer): void {
      if (waiting.length >= maxBlocks) {
        lostBytes += block.length;
        return;
      }
      if (lostBytes > 0) waiting.push(format(sayLost(lostBytes)));
      lostBytes = 0;
      waiting.push(format(block));
      send();
    },
    flushSync(): void {
      // The first block is being written already, and is complete before the process ends.
      writeAllSync(output, isWriting ? waiting.slice(1) : waiting);
      waiting.length = 0;
    },
  };
}

const sayLost = (lostBytes: number) =>
  Buffer.from(
    `${JSON.stringify({ level: 50, time: Date.now(), lostBytes, msg: 'log lines were lost' })}\n`,
  );

function dropWritten(waiting: Buffer[], written: number): void {
  const rest = waiting[0]?.subarray(written);
  if (rest !== undefined && rest.length > 0) waiting[0] = rest;
  else waiting.shift();
}

function writeAllSync(output: LogOutput, blocks: readonly Buffer[]): void {
  const left = [...blocks];
  for (let retries = 0; left.length > 0; ) {
    try {
      dropWritten(left, output.writeSync(left[0] as Buffer));
    } catch (error) {
      const isSlow = (error as NodeJS.ErrnoException).code === 'EAGAIN';
      // On a full disk there is nowhere to say that the last lines are lost.
      if (!isSlow || ++retries > maxLastRetries) return;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, retryMs);
    }
  }
}
