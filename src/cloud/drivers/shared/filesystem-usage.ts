// How much a shared filesystem holds. `du` walks it in a process of its own and at low priority: a
// tenant may have filled it with millions of files.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const execute = promisify(execFile);

export async function measureUsage(directory: string): Promise<number | null> {
  const argv = ['-n', '19', 'du', '-sxB1', '--', directory];
  return execute('nice', argv, { timeout: 60_000 }).then(
    ({ stdout }) => Number.parseInt(stdout, 10),
    () => null,
  );
}
