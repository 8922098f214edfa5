// Holds the namespaces of a running machine open by descriptors and enters them through these. A pid alone
// is unsafe: the kernel may reuse it for a process of the host while a session starts.

import { type FileHandle, open } from 'node:fs/promises';
import { diskIdBase } from '#cloud/drivers/sandbox/disk/id-ranges.ts';
import type { SandboxHost } from '#cloud/drivers/sandbox/host.ts';
import type { MachineProcess } from './machine-directory.ts';
import { isAlive } from './process-identity.ts';

export interface Namespaces {
  /** Command prefix that runs a command inside as `ubuntu`. */
  readonly entrance: readonly string[];
  /** Command prefix for the user of process 1. */
  readonly rootEntrance: readonly string[];
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

/** Returns undefined if the machine ended meanwhile. */
export async function openNamespaces(
  host: SandboxHost,
  { init, keeper }: MachineProcess,
): Promise<Namespaces | undefined> {
  if (host.mode === 'none') {
    const entrance = unisolatedEntrance();
    return { entrance, rootEntrance: entrance, close: async () => {} };
  }
  const handles: FileHandle[] = [];
  const close = async () => {
    await Promise.all(handles.splice(0).map((handle) => handle.close()));
  };
  try {
    const flags: string[] = [];
    for (const [file, option] of Object.entries(kinds)) {
      // In mode `single` the other namespaces belong to the outer user namespace, which the keeper holds.
      const holder = host.mode === 'single' && file === 'user' ? keeper : init;
      const handle = await open(`/proc/${holder.pid}/ns/${file}`, 'r');
      handles.push(handle);
      flags.push(`--${option}=/proc/${process.pid}/fd/${handle.fd}`);
    }
    // Checked last: if a pid was reused earlier, the descriptors would belong to another process.
    if ((await isAlive(init)) && (await isAlive(keeper))) {
      return {
        entrance: ['nsenter', ...flags, ...identity(host, 1000)],
        rootEntrance: ['nsenter', ...flags, ...identity(host, 0)],
        close,
      };
    }
  } catch (error) {
    await close();
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  await close();
  return undefined;
}

function identity(host: SandboxHost, id: number): string[] {
  if (host.mode === 'mapped') return ['--setuid', `${id}`, '--setgid', `${id}`, '--'];
  // The server's one id is root in the outer user namespace and `ubuntu` in that of process 1.
  const inner = ['nsenter', '--target', '1', '--user', '--preserve-credentials', '--'];
  return ['--preserve-credentials', '--', ...inner];
}

/** Command prefix for mode `none`, where the operator may be root but machines must not be. */
export function unisolatedEntrance(): string[] {
  if (process.getuid?.() !== 0) return [];
  const id = String(diskIdBase + 1000);
  return ['setpriv', '--reuid', id, '--regid', id, '--clear-groups', '--no-new-privs', '--'];
}
