// How `backup` and `restore` report their progress, their failures and a signal to stop, and what both print.

import { BackupError } from '#backup/errors.ts';
import type { Watcher } from '#backup/progress.ts';
import { CliError } from '#cli/output.ts';
import { createPlainLines, createRate, describeBytes } from '#cli/progress.ts';
import { StartError } from '#lib/start-error.ts';

/** The exit code of a shell's child that was interrupted. */
const interrupted = 130;

/** Less is done in a second, and a scheduler's mail need not speak of it. */
const longBytes = 64_000_000;

/** A first signal ends the work once its temporary files are removed. */
export async function watched<Value>(work: (watcher: Watcher) => Promise<Value>): Promise<Value> {
  // Lines, also on a terminal: the bar ends the process at Ctrl-C and would leave temporary files behind.
  const lines = createPlainLines(process.stderr);
  const measureRate = createRate();
  const controller = new AbortController();
  const abort = () => controller.abort();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, abort);
  try {
    return await work({
      onProgress(done, total, label) {
        if (total < longBytes) return;
        lines.show(describeBytes(done, total, { rate: measureRate(done), note: label }));
      },
      signal: controller.signal,
    });
  } catch (error) {
    if (controller.signal.aborted) throw new CliError('Interrupted.', interrupted);
    if (error instanceof BackupError || error instanceof StartError) {
      throw new CliError(error.message, 1, error.cause);
    }
    throw error;
  } finally {
    lines.end();
  }
}

/** The address without its password, for commands that people copy between single quotes. */
export function withoutPassword(databaseUrl: string): string {
  const url = new URL(databaseUrl);
  url.password = '';
  url.searchParams.delete('password');
  return url.href.replaceAll("'", '%27');
}

export const notIncluded =
  'model weights, the disks of machines, the contents of filesystems, the configuration file and the environment';
