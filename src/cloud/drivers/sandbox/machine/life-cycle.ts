// Starts, stops and removes one machine. Each function may be repeated after a crash at any line: everything
// outside the machine's directory is named by its id alone.

import { execFile } from 'node:child_process';
import { chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import ssh2 from 'ssh2';
import { DriverError, type MachineSpec } from '#cloud/drivers/driver.ts';
import { createDisk, removeTree } from '#cloud/drivers/sandbox/disk/disk.ts';
import { chooseIdBase, findRunningBases } from '#cloud/drivers/sandbox/disk/id-ranges.ts';
import { findShare } from '#cloud/drivers/sandbox/disk/shares.ts';
import { checkAddress, chooseLoopbackAddress } from '#cloud/drivers/sandbox/network/addresses.ts';
import { attachNetwork } from '#cloud/drivers/sandbox/network/network.ts';
import {
  disableForwardingWhenUnused,
  enableForwarding,
} from '#cloud/drivers/sandbox/network/packet-forwarding.ts';
import { readFirstBoot } from '#cloud/drivers/shared/first-boot.ts';
import { bootMachine } from './boot.ts';
import type { SandboxContext } from './context.ts';
import { createGroups, removeGroups } from './control-groups.ts';
import type { RunningMachine } from './enter.ts';
import { applyRules, removeNetwork } from './firewall.ts';
import {
  findRecord,
  findRecordedProcess,
  findRunningProcess,
  forgetProcess,
  listRecords,
  type MachineDirectory,
  type MachineProcess,
  type MachineRecord,
  machineDirectory,
  writeRecord,
  writeRecordedProcess,
} from './machine-directory.ts';
import { openNamespaces, unisolatedEntrance } from './namespaces.ts';
import { findProcess, signalProcess, waitUntilGone } from './process-identity.ts';

const execute = promisify(execFile);
const gracefulStopMs = 3000;
const forcedStopMs = 10_000;
/** Mount points that a tenant's filesystem must not cover, because the machine needs what is there. */
const reservedMounts = /^\/(usr|bin|sbin|lib\w*|proc|sys|dev|run|etc|tmp|boot)?(\/|$)/;

/** Opens a running machine so that commands can be run in it; undefined if it does not run. The caller must
 * close its namespaces. */
export async function openMachine(
  context: SandboxContext,
  id: string,
): Promise<RunningMachine | undefined> {
  const directory = machineDirectory(context.dataDir, id);
  const record = await findRecord(directory);
  const process = await findRunningProcess(context, directory);
  if (!record || !process) return undefined;
  const { host } = context;
  const namespaces = await openNamespaces(host, process);
  return namespaces && { host, directory, record, process, namespaces };
}

export async function startMachine(context: SandboxContext, spec: MachineSpec): Promise<void> {
  const { dataDir, host } = context;
  const directory = machineDirectory(dataDir, spec.id);
  await checkSpec(context, spec);
  // Removes what a machine that died, or an unfinished boot, left on the host.
  if (await stat(directory.path).catch(() => null)) await stopMachine(context, spec.id);
  const record = await context.locks.run('addresses', () =>
    recordMachine(context, directory, spec),
  );
  await createDisk(context, directory, spec);
  if (host.mode === 'none') await checkHomeReachable(directory);
  if (spec.userData) await writeFile(directory.firstBoot, await readFirstBoot(spec.userData));
  if (host.controlGroups) await createGroups(host.controlGroups, spec.id, spec);
  try {
    await bootMachine(context, directory, record, async (started) => {
      await writeRecordedProcess(directory, started);
      if (host.canRoute) {
        const target = { id: spec.id, ip: record.ip, pid: started.init.pid };
        await applyRules(context, spec.id, true);
        const devices = await attachNetwork(context, target);
        await context.locks.run('forwarding', () => enableForwarding(devices));
      }
    });
  } catch (error) {
    await stopMachine(context, spec.id);
    throw error;
  }
}

/** Writes the machine's record, keeping the address, ids and host key of an earlier start. */
async function recordMachine(
  context: SandboxContext,
  directory: MachineDirectory,
  spec: MachineSpec,
): Promise<MachineRecord> {
  const earlier = await findRecord(directory);
  const others = (await listRecords(context.dataDir)).filter((each) => each.spec.id !== spec.id);
  const takeIds = async () => {
    const running = await findRunningBases();
    const known = new Set(others.map(({ idBase }) => idBase));
    return chooseIdBase(spec.id, (base) => known.has(base) || running.has(base));
  };
  const record: MachineRecord = {
    spec,
    ip: earlier?.ip ?? takeAddress(context, spec, others),
    // A machine of an earlier version gets its own ids here: only its mounts change.
    ...(context.host.mappedBind && { idBase: earlier?.idBase ?? (await takeIds()) }),
    hostKey: earlier?.hostKey ?? generateHostKey(),
  };
  await writeRecord(directory, record);
  return record;
}

/** Ends the machine's processes and removes its network and control groups. The disk is kept. */
export async function stopMachine(context: SandboxContext, id: string) {
  const { dataDir, host } = context;
  const directory = machineDirectory(dataDir, id);
  const process = await findRecordedProcess(directory);
  if (process) await endProcess(process);
  if (host.mode === 'none') await killMarked(id);
  if (host.canRoute) {
    await removeNetwork(context, id);
    await context.locks.run('forwarding', disableForwardingWhenUnused);
  }
  if (host.controlGroups) await removeGroups(host.controlGroups, id);
  await forgetProcess(directory);
}

async function endProcess({ init, keeper }: MachineProcess) {
  await signalProcess(init, 'SIGTERM');
  if (!(await waitUntilGone(init, gracefulStopMs))) await signalProcess(init, 'SIGKILL');
  // The keeper waits for process 1, which the kernel releases last.
  if (!(await waitUntilGone(keeper, forcedStopMs))) {
    throw new DriverError(
      'unavailable',
      'The machine does not stop; it may be waiting for a disk.',
    );
  }
}

/** Stops a machine that gets no time to shut down. */
export async function killMachine(context: SandboxContext, id: string) {
  const process = await findRecordedProcess(machineDirectory(context.dataDir, id));
  if (process) await signalProcess(process.init, 'SIGKILL');
  await stopMachine(context, id);
}

export async function removeMachine(context: SandboxContext, id: string) {
  await killMachine(context, id);
  await removeTree(machineDirectory(context.dataDir, id).path);
}

/** Without isolation `ubuntu` is a user of the host, which needs access to each directory above its home. */
async function checkHomeReachable(directory: MachineDirectory) {
  await chmod(directory.path, 0o711);
  const [program, ...argv] = [
    ...unisolatedEntrance(),
    'test',
    '-w',
    `${directory.disk}/home/ubuntu`,
  ];
  await execute(program!, argv).catch(() => {
    const reason = 'a directory above it is closed to other users';
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
    if ((await findShare(dataDir, id)) === undefined) {
      throw new DriverError('unavailable', `The filesystem for ${mountPoint} is not on this host.`);
    }
  }
}

function takeAddress(
  { range }: SandboxContext,
  spec: MachineSpec,
  others: readonly MachineRecord[],
): string {
  const taken = new Set(others.map(({ ip }) => ip));
  if (spec.ip === null) return chooseLoopbackAddress(range, spec.id, taken);
  if (taken.has(spec.ip))
    throw new DriverError('impossible', `${spec.ip} belongs to another machine.`);
  return spec.ip;
}

/** Kills the processes of a machine without a process namespace, by the mark in their environment. */
async function killMarked(id: string) {
  const mark = `MILLRACE_MACHINE=${id}`;
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const environment = await readFile(`/proc/${name}/environ`, 'latin1').catch(() => '');
    if (!environment.split('\0').includes(mark)) continue;
    const marked = await findProcess(Number(name));
    if (marked) await signalProcess(marked, 'SIGKILL');
  }
}

/** ssh2 can't parse one in two hundred of the keys that it generates itself. */
function generateHostKey(): string {
  for (;;) {
    const { private: key } = ssh2.utils.generateKeyPairSync('ed25519');
    if (!(ssh2.utils.parseKey(key) instanceof Error)) return key;
  }
}
