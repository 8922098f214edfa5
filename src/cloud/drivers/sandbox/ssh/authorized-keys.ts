// The keys that may log in: those given at launch and those in ~/.ssh/authorized_keys. That file is read
// inside the machine with the tenant's rights, so that no symbolic link leads out.

import { timingSafeEqual } from 'node:crypto';
import ssh2, { type ParsedKey } from 'ssh2';
import {
  type RunningMachine,
  signalInside,
  spawnInside,
} from '#cloud/drivers/sandbox/machine/enter.ts';

const maxFileBytes = 65_536;
const readTimeoutMs = 3000;

/** Skips lines with options (`from=`, `command=`), because this server does not implement them. */
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
  const argv = ['head', '-c', String(maxFileBytes), '.ssh/authorized_keys'];
  const child = spawnInside(machine, { argv }, { stdio: ['ignore', 'pipe', 'ignore'] });
  // The tenant may have put a named pipe there, which never ends.
  const timer = setTimeout(() => child.stdout?.destroy(), readTimeoutMs);
  child.on('error', () => child.stdout?.destroy());
  let text = '';
  try {
    for await (const chunk of child.stdout!) {
      text += chunk;
      // The tenant may have replaced `head`.
      if (text.length > maxFileBytes) break;
    }
  } catch {
    return [];
  } finally {
    clearTimeout(timer);
    await signalInside(machine, child, 'SIGKILL');
  }
  return parseAuthorizedKeys(text);
}
