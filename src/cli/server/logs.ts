// millrace logs: the log of the server on this computer, from the file that it keeps in its data directory.

import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, Option } from 'commander';
import { CliError } from '#cli/output.ts';
import { parseLimit } from '#cli/pages.ts';
import { toReason } from '#lib/start-error.ts';
import { toLogFile, toPreviousLogFile } from '#lib/telemetry/log-file.ts';
import { formatLogLine } from '#lib/telemetry/log-format.ts';
import { findInstallation, type InstallationOptions, withDataDirectory } from './installation.ts';

interface Options extends InstallationOptions {
  readonly follow?: true;
  readonly lines: number;
  readonly json?: true;
  readonly text?: true;
}

const pollMs = 250;
const chunkBytes = 65_536;

export function logsCommand(): Command {
  const command = new Command('logs')
    .description('Print the log of the server on this computer')
    .option('-f, --follow', 'Print new lines as they are written, until Ctrl-C')
    .option('-n, --lines <n>', 'Number of lines to begin with', parseLimit, 100)
    .option('--json', 'Print JSON lines, also on a terminal')
    .addOption(new Option('--text', 'Print lines for people, also in a pipe').conflicts('json'));
  return withDataDirectory(command)
    .addHelpText('after', '\nOn a terminal lines are for people, in a pipe they are JSON.')
    .action(printLogs);
}

async function printLogs({ follow, lines, json, text, ...options }: Options): Promise<void> {
  const file = toLogFile(findInstallation(options).data_dir);
  const { stdout } = process;
  const isText = text || (!json && stdout.isTTY);
  const hasColours = stdout.isTTY && stdout.hasColors();
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  // The reader of a pipe has enough.
  stdout.once('error', () => stop.abort());
  const print = (line: string) =>
    stdout.write(`${isText ? formatLogLine(line, hasColours) : line}\n`);

  const reader = openReader(file);
  const last = readLast([toPreviousLogFile(file)], reader, lines);
  for (const line of last) print(line);
  while (follow && !stop.signal.aborted) {
    for (const line of reader.readNew()) print(line);
    await sleep(pollMs, undefined, { signal: stop.signal }).catch(() => {});
  }
  reader.close();
  if (follow) throw new CliError('', 130);
}

/** The last lines of the earlier files and what the reader has not returned yet. */
function readLast(earlier: readonly string[], reader: Reader, count: number): string[] {
  const last: string[] = [];
  const keep = (lines: Iterable<string>) => {
    for (const line of lines) if (last.push(line) > 2 * count) last.splice(0, count);
  };
  for (const file of earlier) {
    const one = exists(file) ? openReader(file) : null;
    // The file may have been renamed since the reader opened it.
    if (one !== null && one.inode !== reader.inode) keep(one.readNew());
    one?.close();
  }
  keep(reader.readNew());
  return last.slice(-count);
}

const exists = (file: string) => statSync(file, { throwIfNoEntry: false }) !== undefined;

interface Reader {
  readonly inode: number;
  /** Whole lines that were not returned before. Goes on in the new file after the old one was renamed. */
  readNew(): Generator<string>;
  close(): void;
}

function openReader(file: string): Reader {
  let fd = open(file);
  let rest = Buffer.alloc(0);
  const chunk = Buffer.allocUnsafe(chunkBytes);

  function* readToEnd(): Generator<string> {
    for (;;) {
      const count = readSync(fd, chunk, 0, chunkBytes, null);
      if (count === 0) return;
      const bytes = Buffer.concat([rest, chunk.subarray(0, count)]);
      const end = bytes.lastIndexOf(10) + 1;
      rest = bytes.subarray(end);
      if (end > 0) yield* bytes.toString('utf8', 0, end - 1).split('\n');
    }
  }

  return {
    inode: fstatSync(fd).ino,
    *readNew() {
      // Asked before the end is reached: what is written until a rename is read first.
      const now = statSync(file, { throwIfNoEntry: false });
      const wasRenamed = now !== undefined && now.ino !== fstatSync(fd).ino;
      yield* readToEnd();
      if (!wasRenamed) return;
      closeSync(fd);
      fd = open(file);
      rest = Buffer.alloc(0);
      yield* readToEnd();
    },
    close: () => closeSync(fd),
  };
}

function open(file: string): number {
  try {
    return openSync(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      throw new CliError(`Can't read ${file}: ${toReason(error)}.`);
    throw new CliError(
      `There is no log at ${file}. Run this on the server's computer, and give its --data-dir or --config.`,
    );
  }
}
