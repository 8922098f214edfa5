// Where `ssh-keys generate` saves private keys, and where `instances ssh` looks for them.

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** `laptop.pem`, the name that the dashboard gives its downloads too. */
const toPemName = (keyName: string) => `${keyName.replaceAll(/[^\w.-]+/g, '-')}.pem`;

/** The file is in ~/.ssh: one in the current directory could end up in a commit or a package. */
export const toPrivateKeyFile = (keyName: string) => join(homedir(), '.ssh', toPemName(keyName));

/** Also looks in the current directory, for a key that was downloaded there. */
export function findPrivateKeyFile(keyNames: readonly string[]): string | undefined {
  const files = keyNames.flatMap((name) => [toPrivateKeyFile(name), toPemName(name)]);
  return files.find((file) => existsSync(file));
}
