// Measures the bytes used by a shared filesystem. `du` walks it in its own process at low priority, because a
// tenant may have created millions of files. The result is null if it takes longer than a minute.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);

export async function measureUsage(
  directory: string,
  /** Command prefix that gives `du` access to directories that a tenant has closed. */
  prefix: readonly string[] = [],
): Promise<number | null> {
  const argv = ['-n', '19', ...prefix, 'du', '-sxB1', '--', directory];
  return execute('nice', argv, { timeout: 60_000 }).then(
    ({ stdout }) => Number.parseInt(stdout, 10),
    () => null,
  );
}
