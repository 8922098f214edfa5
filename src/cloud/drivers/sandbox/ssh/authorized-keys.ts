// Who may log in: the keys given at launch, and those the tenant put into ~/.ssh/authorized_keys, which
// is read inside the machine with the tenant's own rights, so that no link in it leads out.

import { timingSafeEqual } from 'node:crypto';
import ssh2, { type ParsedKey } from 'ssh2';
import {
  type RunningMachine,
  signalInside,
  spawnInside,
} from '#cloud/drivers/sandbox/machine/enter.ts';

const fileLimitBytes = 65_536;
const readTimeoutMs = 3000;

/** Lines with options (`from=`, `command=`) are left out: we can't keep their promises. */
export function parseAuthorizedKeys(text: string): ParsedKey[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => /^(ssh-|ecdsa-)/.test(line))
    .flatMap((line) => {
      const key = ssh2.utils.parseKey(line);
      return key instanceof Error ? [] : key;
    });
}

export function findKey(keys: readonly ParsedKey[], wanted: Buffer): ParsedKey | undefined {
  return keys.find((key) => {
    const known = key.getPublicSSH();
    return known.length === wanted.length && timingSafeEqual(known, wanted);
  });
}

export async function readTenantKeys(machine: RunningMachine): Promise<ParsedKey[]> {
  const argv = ['head', '-c', String(fileLimitBytes), '.ssh/authorized_keys'];
  const child = spawnInside(machine, { argv }, { stdio: ['ignore', 'pipe', 'ignore'] });
  // A pipe in place of the file would never end.
  const timer = setTimeout(() => child.stdout?.destroy(), readTimeoutMs);
  child.on('error', () => child.stdout?.destroy());
  let text = '';
  try {
    for await (const chunk of child.stdout!) {
      text += chunk;
      // The program inside may be the tenant's own.
      if (text.length > fileLimitBytes) break;
    }
  } catch {
    return [];
  } finally {
    clearTimeout(timer);
    await signalInside(machine, child, 'SIGKILL');
  }
  return parseAuthorizedKeys(text);
}
