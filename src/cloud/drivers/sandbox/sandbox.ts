// The driver that needs no set-up: a machine is a sandbox of Linux namespaces on this host, with an ssh
// server in this process. Machines outlive the process; the next one finds them by their directories.

import { execFile } from 'node:child_process';
import { chmod, mkdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import {
  type Driver,
  DriverError,
  type FirewallSpec,
  type KeySpec,
  type MachineSpec,
  type MachineState,
} from '#cloud/drivers/driver.ts';
import { fillImages } from '#cloud/drivers/sandbox/disk/disk-space.ts';
import { watchDisks } from '#cloud/drivers/sandbox/disk/disk-watch.ts';
import { createShare, measureShare, removeShare } from '#cloud/drivers/sandbox/disk/shares.ts';
import { readBootLog } from '#cloud/drivers/sandbox/machine/boot-log.ts';
import type { SandboxContext } from '#cloud/drivers/sandbox/machine/context.ts';
import { removeLeftoverGroups } from '#cloud/drivers/sandbox/machine/control-groups.ts';
import { runInside } from '#cloud/drivers/sandbox/machine/enter.ts';
import { applyRules, toSshRules } from '#cloud/drivers/sandbox/machine/firewall.ts';
import {
  killMachine,
  removeMachine,
  startMachine,
  stopMachine,
} from '#cloud/drivers/sandbox/machine/life-cycle.ts';
import {
  findRecord,
  isRunning,
  listMachineIds,
  machineDirectory,
  writeRecord,
} from '#cloud/drivers/sandbox/machine/machine-directory.ts';
import { memoryForMachines, reserveMemory } from '#cloud/drivers/sandbox/machine/memory-reserve.ts';
import { isAlive } from '#cloud/drivers/sandbox/machine/process-identity.ts';
import { measureMachine } from '#cloud/drivers/sandbox/machine/stats.ts';
import { openSandboxTerminal } from '#cloud/drivers/sandbox/machine/terminal/terminal.ts';
import {
  type AddressRange,
  defaultRange,
  toPrivateAddress,
} from '#cloud/drivers/sandbox/network/addresses.ts';
import {
  createServedMachines,
  type ServedMachine,
  type ServedMachines,
} from '#cloud/drivers/sandbox/ssh/served-machines.ts';
import { FairTurns } from '#lib/async/fair-turns.ts';
import { createKeyedMutex } from '#lib/async/keyed-mutex.ts';
import { shareRecent } from '#lib/async/share-recent.ts';
import { readGpuStats } from '#lib/computer/nvidia-smi.ts';
import { adviseHost, describeHost } from './description.ts';
import { hostFolders, inspectHost } from './host.ts';

const execute = promisify(execFile);

export interface SandboxOptions {
  /** Holds machines in its `machines` folder and shared filesystems in `filesystems`. */
  readonly dataDir: string;
  /** `none` runs machines as plain processes of this host, for users who trust each other. */
  readonly isolation?: 'auto' | 'none';
  /** Lets machines create namespaces and mounts of their own. Default: false. */
  readonly nested?: boolean;
  /** Machines read the host's /opt in place of their own. Default: false. */
  readonly shareOpt?: boolean;
  /** Ports to try on the machine's own address, in this order. Default: 22, then 2222. */
  readonly sshPorts?: readonly number[];
  readonly addresses?: AddressRange;
  /** Memory that machines leave to the host. Null or undefined: a sixteenth, at least 1 GiB. */
  readonly reservedMemoryGib?: number | null;
  /** Disk space of the host that machines and filesystems leave to it. Default: 0. */
  readonly diskReserveGib?: number;
  /** Size of new filesystems. Null or undefined: a sixteenth of the free space, at least 1 GiB. */
  readonly filesystemGib?: number | null;
  /** Disk space that types divide. Null or undefined: half of the free space when it was first measured. */
  readonly machinesDiskGib?: number | null;
  /** `auto` uses OpenSSH's sftp server where the host has it; `own` always uses the built-in one. */
  readonly sftpServer?: 'auto' | 'own';
  /** `auto` makes disk images where the host can; `directories` makes new disks without them. */
  readonly disks?: 'auto' | 'directories';
  readonly log?: (message: string) => void;
}

/** A driver that has terminals, connections and commands. */
export type SandboxDriver = Driver & Required<Pick<Driver, 'attachTerminal' | 'connect' | 'run'>>;

const advice =
  'Set `isolation: none` to run machines without isolation, if you trust all who use them.';

/** How long one reading of the host's GPUs serves all machines. */
const gpuStatsMs = 1_000;

export async function createSandboxDriver(options: SandboxOptions): Promise<SandboxDriver> {
  const context = await openContext(options);
  await reserveMemory(context);
  for (const advice of adviseHost(context.host)) context.log(advice);
  const { dataDir, locks, log } = context;
  const served = createServedMachines(context);
  const gpuStats = shareRecent(gpuStatsMs, readGpuStats);
  for (const id of await listMachineIds(dataDir)) {
    await served
      .adopt(id)
      .catch((error: Error) => log(`machine ${id} was not adopted: ${error.message}`));
  }
  await fillImages(context, log);
  const unwatch = watchDisks(
    context,
    () => served.count > 0,
    (id, reason) => locks.run(id, () => stopBecause(context, served, id, reason)),
  );
  return {
    name: 'sandbox',
    describe: () => describeHost(context),
    launch: (spec) => locks.run(spec.id, () => launch(context, served, spec)),
    inspect: (id) => inspect(context, served, id),
    restart: (spec) =>
      locks.run(spec.id, async () => {
        await served.release(spec.id);
        await stopMachine(context, spec.id);
        await startAndServe(context, served, spec);
      }),
    terminate: (id) =>
      locks.run(id, async () => {
        await served.release(id);
        await removeMachine(context, id);
      }),
    list: () => listMachineIds(dataDir),
    setFirewall: (spec) =>
      locks.run(spec.id, () => setFirewall(context, served.find(spec.id), spec)),
    refuseKeys: (spec) => locks.run(spec.id, () => refuseKeys(context, served.find(spec.id), spec)),
    createFilesystem: (id) => createShare(context, id),
    deleteFilesystem: (id) => removeShare(context, id),
    filesystemUsage: (id) => measureShare(context, id),
    bootLog: (id) => readBootLog(machineDirectory(dataDir, id).bootLog),
    async stats(id) {
      const known = served.find(id);
      if (!known || !(await isAlive(known.machine.process.init))) return undefined;
      return measureMachine(known.machine, gpuStats);
    },
    async attachTerminal(id, size) {
      const known = served.find(id);
      if (!known) return undefined;
      return openSandboxTerminal(known.machine, { ...size, command: null, type: 'xterm-256color' });
    },
    connect: (id, port) => connect(served.find(id), port),
    run: (id, command) => run(served.find(id), command),
    async close() {
      unwatch();
      await served.close();
    },
  };
}

async function openContext(options: SandboxOptions): Promise<SandboxContext> {
  await mkdir(options.dataDir, { recursive: true });
  const dataDir = await realpath(options.dataDir);
  for (const name of hostFolders) await mkdir(path.join(dataDir, name), { recursive: true });
  const found = await inspectHost(dataDir, {
    isolation: options.isolation ?? 'auto',
    nested: options.nested ?? false,
  });
  const host = {
    ...found,
    ...(options.sftpServer === 'own' && { sftpServer: null }),
    ...(options.disks === 'directories' && { diskImages: false }),
  };
  // Without isolation the machines' user must be able to traverse the path to its home.
  const folderMode = host.mode === 'none' ? 0o711 : 0o700;
  if (host.mode === 'none') await chmod(dataDir, folderMode);
  for (const name of hostFolders) await chmod(path.join(dataDir, name), folderMode);
  // On btrfs, so that files written again need no new blocks. Elsewhere it fails and is not needed.
  const folders = hostFolders.map((name) => path.join(dataDir, name));
  await execute('chattr', ['+C', ...folders]).catch(() => {});
  if (host.controlGroups) await removeLeftoverGroups(host.controlGroups);
  return {
    dataDir,
    host,
    shareOpt: options.shareOpt ?? false,
    machineMemory: memoryForMachines(options.reservedMemoryGib ?? null),
    diskReserve: (options.diskReserveGib ?? 0) * 2 ** 30,
    filesystemGib: options.filesystemGib ?? null,
    machinesDiskGib: options.machinesDiskGib ?? null,
    range: options.addresses ?? defaultRange,
    sshPorts: options.sshPorts ?? [22, 2222],
    locks: createKeyedMutex(),
    turns: new FairTurns(),
    log: options.log ?? (() => {}),
  };
}

async function launch(context: SandboxContext, served: ServedMachines, spec: MachineSpec) {
  const { obstacle } = context.host;
  if (obstacle) throw new DriverError('impossible', `${obstacle} ${advice}`);
  if (!(await served.adopt(spec.id))) await startAndServe(context, served, spec);
}

async function startAndServe(context: SandboxContext, served: ServedMachines, spec: MachineSpec) {
  await startMachine(context, spec);
  if (await served.adopt(spec.id)) return;
  throw new DriverError('unavailable', 'The machine ended right after it was started.');
}

async function inspect(
  context: SandboxContext,
  served: ServedMachines,
  id: string,
): Promise<MachineState> {
  const { dataDir, host, range, locks, log } = context;
  const adoptLater = () =>
    void locks.run(id, () => served.adopt(id)).catch((error: Error) => log(error.message));
  const known = served.find(id);
  if (known && (await isAlive(known.machine.process.init))) {
    const { ip } = known.machine.record;
    const privateIp = host.canRoute ? toPrivateAddress(range, ip) : ip;
    return { state: 'running', ip, privateIp, sshPort: known.server.port };
  }
  // The machine ended on its own: its ssh server must close, which frees the address.
  if (known) adoptLater();
  const directory = machineDirectory(dataDir, id);
  if (!(await stat(directory.path).catch(() => null))) return { state: 'absent' };
  // Asked before as well: the launch may end while the record is read.
  const wasHeld = locks.isHeld(id);
  const record = await findRecord(directory);
  if (!known && (wasHeld || locks.isHeld(id))) return { state: 'starting', ip: record?.ip ?? null };
  if (!record) return { state: 'stopped', reason: 'Its launch was never finished.' };
  if (await isRunning(context, id)) {
    adoptLater();
    return { state: 'starting', ip: record.ip };
  }
  const reason = record.stopped ?? 'Its processes ended, or this host was restarted.';
  return { state: 'stopped', reason };
}

async function connect(known: ServedMachine | undefined, port: number) {
  if (!known) throw new DriverError('unavailable', 'The machine does not run.');
  return known.forwarder.connect('127.0.0.1', port).catch((error: Error) => {
    throw new DriverError('unavailable', `Port ${port} of the machine: ${error.message}.`, error);
  });
}

async function run(known: ServedMachine | undefined, command: readonly string[]): Promise<number> {
  if (!known) throw new DriverError('unavailable', 'The machine does not run.');
  const code = await runInside(known.machine, command).catch((error: Error) => {
    throw new DriverError('unavailable', `The command could not be run: ${error.message}.`, error);
  });
  if (code === null) throw new DriverError('unavailable', 'The command did not end in time.');
  return code;
}

async function stopBecause(
  context: SandboxContext,
  served: ServedMachines,
  id: string,
  reason: string,
) {
  const directory = machineDirectory(context.dataDir, id);
  const record = await findRecord(directory);
  // It was terminated meanwhile.
  if (!record) return;
  await writeRecord(directory, { ...record, stopped: reason });
  await served.release(id);
  await killMachine(context, id);
}

async function setFirewall(
  context: SandboxContext,
  served: ServedMachine | undefined,
  { id, account, firewall }: FirewallSpec,
) {
  const directory = machineDirectory(context.dataDir, id);
  const record = await findRecord(directory);
  if (!record) return;
  await writeRecord(directory, { ...record, spec: { ...record.spec, account, firewall } });
  served?.server.setRules(toSshRules(context, firewall));
  if (context.host.canRoute && (await isRunning(context, id))) {
    // Its account is unknown to a machine of an earlier version.
    await applyRules(context, id, record.spec.account !== account);
  }
}

async function refuseKeys(
  { dataDir }: SandboxContext,
  served: ServedMachine | undefined,
  { id, authorizedKeys, refusedKeys = [] }: KeySpec,
) {
  const directory = machineDirectory(dataDir, id);
  const record = await findRecord(directory);
  if (!record) return;
  // Kept, because a server that starts serves its machines before it reads their rows.
  const spec = { ...record.spec, authorizedKeys, refusedKeys };
  await writeRecord(directory, { ...record, spec });
  served?.server.refuse(refusedKeys);
}
