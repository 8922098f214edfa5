// Files for the secrets of a first start. They are used if the output of the server is not a
// terminal: it is kept then, by a journal, a container engine or a log collector, and read by
// people who must not have them.

import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type FirstSecret = 'first-api-key' | 'setup-link';

/** Returns the path of the file, which only the server's user can read. */
export function writeSecret(dataDir: string, name: FirstSecret, secret: string): string {
  const file = join(dataDir, name);
  const draft = `${file}.new`;
  // A file that exists would keep its mode.
  rmSync(draft, { force: true });
  writeFileSync(draft, `${secret}\n`, { mode: 0o600, flag: 'wx', flush: true });
  renameSync(draft, file);
  return file;
}

/** For a secret that is no longer valid. */
export const removeSecret = (dataDir: string, name: FirstSecret): void =>
  rmSync(join(dataDir, name), { force: true });
