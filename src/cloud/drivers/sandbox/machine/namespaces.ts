// The namespaces of a running machine, held open by descriptors of ours and entered through them. A pid
// alone would not do: it may pass to a process of the host while a session is being started.

import { type FileHandle, open } from 'node:fs/promises';
import type { SandboxHost } from '#cloud/drivers/sandbox/host.ts';
import { idBase } from './disk.ts';
import type { MachineProcess } from './machine-directory.ts';
import { isAlive } from './process-identity.ts';

export interface Namespaces {
  /** What stands before a command to run it inside as `ubuntu`. */
  readonly entrance: readonly string[];
  close(): Promise<void>;
}

const kinds = {
  user: 'user',
  mnt: 'mount',
  uts: 'uts',
  ipc: 'ipc',
  net: 'net',
  pid: 'pid',
  cgroup: 'cgroup',
};

/** Undefined when the machine ended meanwhile. */
export async function openNamespaces(
  host: SandboxHost,
  { init, keeper }: MachineProcess,
): Promise<Namespaces | undefined> {
  if (host.mode === 'none') return { entrance: unisolatedEntrance(), close: async () => {} };
  const handles: FileHandle[] = [];
  const close = async () => {
    await Promise.all(handles.splice(0).map((handle) => handle.close()));
  };
  try {
    const flags: string[] = [];
    for (const [file, option] of Object.entries(kinds)) {
      // With a single id the others belong to the outer user namespace, which its maker still holds.
      const holder = host.mode === 'single' && file === 'user' ? keeper : init;
      const handle = await open(`/proc/${holder.pid}/ns/${file}`, 'r');
      handles.push(handle);
      flags.push(`--${option}=/proc/${process.pid}/fd/${handle.fd}`);
    }
    // Asked last: had the pid changed hands before, the descriptors would be somebody else's.
    if ((await isAlive(init)) && (await isAlive(keeper))) {
      return { entrance: ['nsenter', ...flags, ...identity(host)], close };
    }
  } catch (error) {
    await close();
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  await close();
  return undefined;
}

function identity(host: SandboxHost): string[] {
  if (host.mode === 'mapped') return ['--setuid', '1000', '--setgid', '1000', '--'];
  // In the outer user namespace our one id looks like root; in that of process 1 it is `ubuntu`.
  const inner = ['nsenter', '--target', '1', '--user', '--preserve-credentials', '--'];
  return ['--preserve-credentials', '--', ...inner];
}

export function unisolatedEntrance(): string[] {
  if (process.getuid?.() !== 0) return [];
  const id = String(idBase + 1000);
  return ['setpriv', '--reuid', id, '--regid', id, '--clear-groups', '--no-new-privs', '--'];
}
