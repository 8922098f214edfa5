// Progress of slow work on stderr: a bar or a spinner by `@clack/prompts` on a terminal, plain lines
// elsewhere. While it is shown, Ctrl-C prints what goes on without this command and exits with code 130.

import { toDuration, toSize } from '#lib/text/format.ts';

export interface ByteProgress {
  show(done: number, note?: string): void;
  /** Leaves the last state on the screen. */
  end(): void;
}

export interface StatusProgress {
  show(status: string): void;
  end(): void;
}

export interface ProgressOptions {
  /** Printed when the person interrupts: what continues, and how to stop or watch it. */
  readonly onInterrupt: string;
}

const rateWindowMs = 5_000;
const plainIntervalMs = 5_000;

/** Shows bytes out of a total. */
export async function startByteProgress(
  total: number,
  options: ProgressOptions,
): Promise<ByteProgress> {
  const measureRate = createRate();
  const describe = (done: number, note: string) =>
    describeBytes(done, total, { rate: measureRate(done), note });
  if (!process.stderr.isTTY) {
    const lines = createPlainLines(process.stderr);
    const stopListening = onInterrupt(options.onInterrupt);
    return {
      show: (done, note = '') => lines.show(describe(done, note)),
      end: () => {
        stopListening();
        lines.end();
      },
    };
  }
  const { progress } = await import('@clack/prompts');
  const bar = progress({ max: total, size: 24, style: 'block', ...onTerminal });
  let shown = 0;
  let last = '';
  bar.start();
  const stopListening = onInterrupt(options.onInterrupt);
  return {
    show(done, note = '') {
      last = describe(done, note);
      // A step is negative after a download that began anew.
      bar.advance(done - shown, last);
      shown = done;
    },
    end() {
      stopListening();
      bar.stop(last);
    },
  };
}

/** Shows a status that changes, and the time since the start. */
export async function startStatusProgress(options: ProgressOptions): Promise<StatusProgress> {
  let last = '';
  if (!process.stderr.isTTY) {
    const stopListening = onInterrupt(options.onInterrupt);
    return {
      show(status) {
        if (status !== last) process.stderr.write(`${status}\n`);
        last = status;
      },
      end: stopListening,
    };
  }
  const { spinner } = await import('@clack/prompts');
  const line = spinner(onTerminal);
  line.start('waiting');
  const stopListening = onInterrupt(options.onInterrupt);
  return {
    show(status) {
      last = status;
      line.message(status);
    },
    end() {
      stopListening();
      line.stop(last);
    },
  };
}

const onTerminal = {
  output: process.stderr,
  withGuide: false,
  indicator: 'timer',
  cancelMessage: 'Interrupted',
  errorMessage: 'Interrupted',
} as const;

/**
 * Ends the process at SIGINT and SIGTERM. On a terminal clack reads Ctrl-C as a key and calls
 * `process.exit(0)`, so the exit itself is observed too: while this listens, every exit is an interrupt.
 */
function onInterrupt(message: string): () => void {
  const exitBySignal = { SIGINT: () => process.exit(130), SIGTERM: () => process.exit(143) };
  const atExit = (code: number) => {
    process.exitCode = code === 0 ? 130 : code;
    process.stderr.write(`${message}\n`);
  };
  process.on('SIGINT', exitBySignal.SIGINT);
  process.on('SIGTERM', exitBySignal.SIGTERM);
  process.on('exit', atExit);
  return () => {
    process.off('SIGINT', exitBySignal.SIGINT);
    process.off('SIGTERM', exitBySignal.SIGTERM);
    process.off('exit', atExit);
  };
}

/** Bytes per second over the last few seconds, so that the rate follows the network. */
export function createRate(now: () => number = Date.now): (done: number) => number {
  const samples: { readonly at: number; readonly bytes: number }[] = [];
  return (done) => {
    const at = now();
    const previous = samples.at(-1);
    // Fewer bytes than before: the download began anew.
    if (previous !== undefined && done < previous.bytes) samples.length = 0;
    samples.push({ at, bytes: done });
    while (samples.length > 2 && at - (samples[0]?.at ?? at) > rateWindowMs) samples.shift();
    const first = samples[0] ?? { at, bytes: done };
    return at > first.at ? ((done - first.bytes) * 1000) / (at - first.at) : 0;
  };
}

export function describeBytes(
  done: number,
  total: number,
  { rate, note }: { rate: number; note: string },
): string {
  const percent = total === 0 ? 0 : Math.floor((done / total) * 100);
  return [
    `${percent}%`,
    `${toSize(done)} of ${toSize(total)}`,
    ...(rate > 0
      ? [`${toSize(rate)}/s`, `${toDuration(((total - done) / rate) * 1000)} left`]
      : []),
    ...(note === '' ? [] : [note]),
  ].join('  ');
}

/** Prints at most one line every five seconds, and the last state at the end. */
export function createPlainLines(
  output: { write(text: string): unknown },
  now: () => number = Date.now,
) {
  let writtenAt = Number.NEGATIVE_INFINITY;
  let pending: string | null = null;
  const write = (text: string) => {
    output.write(`${text}\n`);
    writtenAt = now();
    pending = null;
  };
  return {
    show(text: string): void {
      if (now() - writtenAt >= plainIntervalMs) write(text);
      else pending = text;
    },
    end(): void {
      if (pending !== null) write(pending);
    },
  };
}
