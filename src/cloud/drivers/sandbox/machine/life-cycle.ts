// Starting, stopping and removing one machine, each to be repeated safely after a crash at any line.
// Everything outside of the machine's directory is named by its id alone.

import { execFile } from 'node:child_process';
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import ssh2 from 'ssh2';
import { DriverError, type MachineSpec } from '#cloud/drivers/driver.ts';
import type { SandboxHost } from '#cloud/drivers/sandbox/host.ts';
import { checkAddress, chooseLoopbackAddress } from '#cloud/drivers/sandbox/network/addresses.ts';
import {
  type Addressing,
  attachNetwork,
  detachNetwork,
} from '#cloud/drivers/sandbox/network/network.ts';
import { switchOffWhenUnused, switchOn } from '#cloud/drivers/sandbox/network/packet-forwarding.ts';
import { toFirstBoot } from '#cloud/drivers/shared/user-data.ts';
import type { KeyedMutex } from '#lib/async/keyed-mutex.ts';
import { bootMachine } from './boot.ts';
import { createGroups, removeGroups } from './control-groups.ts';
import { createDisk, removeTree } from './disk.ts';
import * as directories from './machine-directory.ts';
import { unisolatedEntrance } from './namespaces.ts';
import { findProcess, isAlive, signalProcess, waitUntilGone } from './process-identity.ts';

/** A machine whose process 1 runs. */
export interface LivingMachine {
  readonly directory: directories.MachineDirectory;
  readonly record: directories.MachineRecord;
  readonly process: directories.MachineProcess;
}

/** What all machines of one driver share. */
export interface SandboxContext extends Addressing {
  readonly dataDir: string;
  readonly host: SandboxHost;
  readonly locks: KeyedMutex;
}

const execute = promisify(execFile);
const gracefulStopMs = 3000;
const forcedStopMs = 10_000;
/** Where a tenant's files may be put: not over what makes the machine work. */
const reservedMounts = /^\/(usr|bin|sbin|lib\w*|proc|sys|dev|run|etc|tmp|boot)?(\/|$)/;

export async function findLiving(
  context: SandboxContext,
  id: string,
): Promise<LivingMachine | undefined> {
  const directory = directories.machineDirectory(context.dataDir, id);
  const record = await directories.findRecord(directory);
  const process = await directories.findRecordedProcess(directory);
  if (!record || !process || !(await isAlive(process.init))) return undefined;
  // Made by a server with other rights: entering it as ours are would not be where its tenant expects.
  if (process.mode !== context.host.mode) return undefined;
  return { directory, record, process };
}

export async function startMachine(
  context: SandboxContext,
  spec: MachineSpec,
): Promise<LivingMachine> {
  const { dataDir, host } = context;
  const directory = directories.machineDirectory(dataDir, spec.id);
  await checkSpec(context, spec);
  // What a machine that died by itself, or a boot that we did not finish, left outside.
  if (await stat(directory.path).catch(() => null)) await stopMachine(context, spec.id);
  const record = await context.locks.run('addresses', () =>
    recordMachine(context, directory, spec),
  );
  await createDisk(directory, spec.hostname, host.mode);
  if (host.mode === 'none') await checkWay(directory);
  if (spec.userData) await writeFile(directory.firstBoot, toFirstBoot(spec.userData));
  if (host.controlGroups) await createGroups(host.controlGroups, spec.id, spec);
  try {
    let process: directories.MachineProcess | undefined;
    await bootMachine(host, dataDir, directory, record, async (started) => {
      process = started;
      await directories.writeRecordedProcess(directory, started);
      if (host.canRoute) {
        const { pid } = started.init;
        const devices = await attachNetwork(context, spec.id, record.ip, pid, spec.firewall);
        await context.locks.run('forwarding', () => switchOn(devices));
      }
    });
    return { directory, record, process: process! };
  } catch (error) {
    await stopMachine(context, spec.id);
    throw error;
  }
}

/** Keeps the address and host key of an earlier start. */
async function recordMachine(
  context: SandboxContext,
  directory: directories.MachineDirectory,
  spec: MachineSpec,
): Promise<directories.MachineRecord> {
  const earlier = await directories.findRecord(directory);
  const record = {
    spec,
    ip: earlier?.ip ?? (await takeAddress(context, spec)),
    hostKey: earlier?.hostKey ?? newHostKey(),
  };
  await directories.writeRecord(directory, record);
  return record;
}

/** Ends the processes and takes away what stands for them on the host; the disk stays. */
export async function stopMachine(context: SandboxContext, id: string) {
  const { dataDir, host } = context;
  const directory = directories.machineDirectory(dataDir, id);
  const process = await directories.findRecordedProcess(directory);
  if (process) await endProcess(process);
  if (host.mode === 'none') await endMarked(id);
  if (host.canRoute) {
    await detachNetwork(id);
    await context.locks.run('forwarding', switchOffWhenUnused);
  }
  if (host.controlGroups) await removeGroups(host.controlGroups, id);
  await directories.forgetProcess(directory);
}

async function endProcess({ init, keeper }: directories.MachineProcess) {
  await signalProcess(init, 'SIGTERM');
  if (!(await waitUntilGone(init, gracefulStopMs))) await signalProcess(init, 'SIGKILL');
  // It waits for process 1, which the kernel lets go of last.
  if (!(await waitUntilGone(keeper, forcedStopMs))) {
    throw new DriverError('unavailable', 'The machine does not end; it may wait for a disk.');
  }
}

export async function removeMachine(context: SandboxContext, id: string) {
  const directory = directories.machineDirectory(context.dataDir, id);
  const process = await directories.findRecordedProcess(directory);
  // Nobody will miss what it has in memory.
  if (process) await signalProcess(process.init, 'SIGKILL');
  await stopMachine(context, id);
  await removeTree(directory.path);
}

/** Without isolation, `ubuntu` is an id of the host that has to walk to its home like anybody else. */
async function checkWay(directory: directories.MachineDirectory) {
  await chmod(directory.path, 0o711);
  const [program, ...argv] = [
    ...unisolatedEntrance(),
    'test',
    '-w',
    `${directory.disk}/home/ubuntu`,
  ];
  await execute(program!, argv).catch(() => {
    const reason = 'the folders above it are closed to other users';
    throw new DriverError('impossible', `Machines can't reach ${directory.disk}: ${reason}.`);
  });
}

async function checkSpec({ dataDir, range }: SandboxContext, spec: MachineSpec) {
  if (!/^[a-z0-9][a-z0-9-]{0,62}$/i.test(spec.hostname)) {
    throw new DriverError('impossible', `"${spec.hostname}" is not a host name.`);
  }
  if (spec.ip !== null) checkAddress(range, spec.ip);
  for (const { id, mountPoint } of spec.filesystems) {
    const isPlain = /^(\/[\w.-]+)+$/.test(mountPoint) && !/\/\.\.?(\/|$)/.test(mountPoint);
    if (!isPlain || reservedMounts.test(mountPoint)) {
      throw new DriverError('impossible', `A filesystem can't be mounted at "${mountPoint}".`);
    }
    if (!(await stat(directories.sharePath(dataDir, id)).catch(() => null))) {
      throw new DriverError('unavailable', `The filesystem for ${mountPoint} is not on this host.`);
    }
  }
}

async function takeAddress({ dataDir, range }: SandboxContext, spec: MachineSpec): Promise<string> {
  const others = (await directories.listMachineIds(dataDir)).filter((id) => id !== spec.id);
  const records = await Promise.all(
    others.map((id) => directories.findRecord(directories.machineDirectory(dataDir, id))),
  );
  const taken = new Set(records.flatMap((record) => (record ? [record.ip] : [])));
  if (spec.ip === null) return chooseLoopbackAddress(range, spec.id, taken);
  if (taken.has(spec.ip))
    throw new DriverError('impossible', `${spec.ip} belongs to another machine.`);
  return spec.ip;
}

/** Without a process namespace, a machine's processes are known by a mark in their environment. */
async function endMarked(id: string) {
  const mark = `MILLRACE_MACHINE=${id}`;
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const environment = await readFile(`/proc/${name}/environ`, 'latin1').catch(() => '');
    if (!environment.split('\0').includes(mark)) continue;
    const marked = await findProcess(Number(name));
    if (marked) await signalProcess(marked, 'SIGKILL');
  }
}

/** Of two hundred keys that ssh2 makes, one can't be read by ssh2 itself. */
function newHostKey(): string {
  for (;;) {
    const { private: key } = ssh2.utils.generateKeyPairSync('ed25519');
    if (!(ssh2.utils.parseKey(key) instanceof Error)) return key;
  }
}
