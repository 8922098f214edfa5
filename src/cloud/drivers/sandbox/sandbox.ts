// The driver that needs no set-up: every machine is a sandbox of Linux namespaces on this host, with an
// ssh server in our process as its front door. Machines outlive this process and are found again by what
// lies in their directories.

import { chmod, mkdir, open, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { type Driver, DriverError } from '#cloud/drivers/driver.ts';
import { removeLeftoverGroups } from '#cloud/drivers/sandbox/machine/control-groups.ts';
import { createShare, removeTree } from '#cloud/drivers/sandbox/machine/disk.ts';
import type { RunningMachine } from '#cloud/drivers/sandbox/machine/enter.ts';
import {
  findLiving,
  type LivingMachine,
  removeMachine,
  type SandboxContext,
  startMachine,
  stopMachine,
} from '#cloud/drivers/sandbox/machine/life-cycle.ts';
import {
  findRecord,
  listMachineIds,
  machineDirectory,
  sharePath,
  writeRecord,
} from '#cloud/drivers/sandbox/machine/machine-directory.ts';
import { openNamespaces } from '#cloud/drivers/sandbox/machine/namespaces.ts';
import { isAlive } from '#cloud/drivers/sandbox/machine/process-identity.ts';
import { openSandboxTerminal } from '#cloud/drivers/sandbox/machine/terminal.ts';
import {
  type AddressRange,
  defaultRange,
  toPrivateAddress,
} from '#cloud/drivers/sandbox/network/addresses.ts';
import { applyRules } from '#cloud/drivers/sandbox/network/network.ts';
import { type SshServer, startSshServer } from '#cloud/drivers/sandbox/ssh/server.ts';
import { measureUsage } from '#cloud/drivers/shared/filesystem-usage.ts';
import { createKeyedMutex } from '#lib/async/keyed-mutex.ts';
import { describeHost } from './description.ts';
import { inspectHost } from './host.ts';

export interface SandboxOptions {
  /** Machines lie in its `machines` folder, shared filesystems in `filesystems`. */
  readonly dataDir: string;
  /** `none` runs machines as plain processes of this host; only for people who trust each other. */
  readonly isolation?: 'auto' | 'none';
  /** Tried in this order on the machine's own address. */
  readonly sshPorts?: readonly number[];
  readonly addresses?: AddressRange;
  /** OpenSSH's sftp server where the host has it, or always ours. */
  readonly sftpServer?: 'auto' | 'own';
  readonly log?: (message: string) => void;
}

/** It has terminals. */
export type SandboxDriver = Driver & Required<Pick<Driver, 'attachTerminal'>>;

const bootLogBytes = 256 * 1024;

export async function createSandboxDriver(options: SandboxOptions): Promise<SandboxDriver> {
  const log = options.log ?? (() => {});
  await mkdir(options.dataDir, { recursive: true });
  const dataDir = await realpath(options.dataDir);
  const found = await inspectHost(options.isolation ?? 'auto', dataDir);
  const host = options.sftpServer === 'own' ? { ...found, sftpServer: null } : found;
  // Without isolation the machines' user must be able to walk to its home.
  const folderMode = host.mode === 'none' ? 0o711 : 0o700;
  if (host.mode === 'none') await chmod(dataDir, folderMode);
  for (const name of ['machines', 'filesystems']) {
    await mkdir(path.join(dataDir, name), { recursive: true });
    await chmod(path.join(dataDir, name), folderMode);
  }
  if (host.controlGroups) await removeLeftoverGroups(host.controlGroups);
  const range = options.addresses ?? defaultRange;
  const sshPorts = options.sshPorts ?? [22, 2222];
  const context: SandboxContext = { dataDir, host, range, sshPorts, locks: createKeyedMutex() };
  const doors = new Map<string, { machine: RunningMachine; door: SshServer }>();
  let closed = false;

  async function serve(living: LivingMachine) {
    const { id } = living.directory;
    const known = doors.get(id);
    if (known?.machine.process.init.startTime === living.process.init.startTime) return known;
    await leave(id);
    const namespaces = await openNamespaces(host, living.process);
    if (!namespaces || closed) {
      await namespaces?.close();
      throw new DriverError('unavailable', 'The machine ended, or this server is closing.');
    }
    const machine: RunningMachine = { host, ...living, namespaces };
    try {
      const door = await startSshServer(machine, sshPorts, log);
      doors.set(id, { machine, door });
      return { machine, door };
    } catch (error) {
      await namespaces.close();
      throw error;
    }
  }

  async function leave(id: string) {
    const known = doors.get(id);
    doors.delete(id);
    await known?.door.close();
    await known?.machine.namespaces.close();
  }

  /** Finds a living machine and serves it, also one that an earlier process of ours had started. */
  async function adopt(id: string) {
    const living = await findLiving(context, id);
    if (living) return serve(living);
    await leave(id);
    return undefined;
  }

  for (const id of await listMachineIds(dataDir)) {
    await adopt(id).catch((error: Error) => log(`machine ${id} was not adopted: ${error.message}`));
  }

  return {
    name: 'sandbox',
    describe: () => describeHost(context),

    launch: (spec) =>
      context.locks.run(spec.id, async () => {
        if (host.obstacle) throw new DriverError('impossible', `${host.obstacle} ${advice}`);
        if (await adopt(spec.id)) return;
        await serve(await startMachine(context, spec));
      }),

    async inspect(id) {
      const known = doors.get(id);
      if (known && (await isAlive(known.machine.process.init))) {
        const { ip } = known.machine.record;
        const privateIp = host.canRoute ? toPrivateAddress(range, ip) : ip;
        return { state: 'running', ip, privateIp, sshPort: known.door.port };
      }
      // It ended by itself: nobody can log in, and its address is free again.
      if (known)
        void context.locks.run(id, () => adopt(id)).catch((error: Error) => log(error.message));
      const directory = machineDirectory(dataDir, id);
      if (!(await stat(directory.path).catch(() => null))) return { state: 'absent' };
      const record = await findRecord(directory);
      if (!known && context.locks.isHeld(id)) return { state: 'starting', ip: record?.ip ?? null };
      if (!record) return { state: 'stopped', reason: 'It was never made to its end.' };
      if (await findLiving(context, id)) {
        void context.locks.run(id, () => adopt(id)).catch((error: Error) => log(error.message));
        return { state: 'starting', ip: record.ip };
      }
      return { state: 'stopped', reason: 'Its processes ended, or this host was restarted.' };
    },

    restart: (spec) =>
      context.locks.run(spec.id, async () => {
        await leave(spec.id);
        await stopMachine(context, spec.id);
        await serve(await startMachine(context, spec));
      }),

    terminate: (id) =>
      context.locks.run(id, async () => {
        await leave(id);
        await removeMachine(context, id);
      }),

    list: () => listMachineIds(dataDir),

    setFirewall: (id, rules) =>
      context.locks.run(id, async () => {
        const directory = machineDirectory(dataDir, id);
        const record = await findRecord(directory);
        if (!record) return;
        await writeRecord(directory, { ...record, spec: { ...record.spec, firewall: rules } });
        doors.get(id)?.door.setRules(rules);
        if (host.canRoute && (await findLiving(context, id)))
          await applyRules(context, id, record.ip, rules);
      }),

    createFilesystem: (id) => createShare(sharePath(dataDir, id), host.mode),
    deleteFilesystem: (id) => removeTree(sharePath(dataDir, id)),
    filesystemUsage: (id) => measureUsage(sharePath(dataDir, id)),

    async bootLog(id) {
      const file = await open(machineDirectory(dataDir, id).bootLog).catch(() => null);
      if (!file) return '';
      try {
        const { size } = await file.stat();
        const length = Math.min(size, bootLogBytes);
        const { buffer } = await file.read(Buffer.alloc(length), 0, length, size - length);
        return buffer.toString('utf8');
      } finally {
        await file.close();
      }
    },

    async attachTerminal(id, size) {
      const known = doors.get(id);
      if (!known) return undefined;
      return openSandboxTerminal(known.machine, { ...size, command: null, type: 'xterm-256color' });
    },

    async close() {
      closed = true;
      await Promise.all([...doors.keys()].map(leave));
    },
  };
}

const advice =
  'Set `isolation: none` to run machines without isolation, if you trust all who use them.';
