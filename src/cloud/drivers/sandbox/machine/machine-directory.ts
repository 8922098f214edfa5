// One machine on disk: its spec, address, host key, processes and files. This is all that is needed to find
// the machine after a crash, and the machine can't see it.

import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import type { MachineSpec } from '#cloud/drivers/driver.ts';
import type { IsolationMode } from '#cloud/drivers/sandbox/host.ts';
import type { SandboxContext } from './context.ts';
import { isAlive, type ProcessIdentity } from './process-identity.ts';

const machineId = /^[0-9a-f]{32}$/;

/** The content of `machine.json`. */
export interface MachineRecord {
  readonly spec: MachineSpec;
  readonly ip: string;
  /** First of the machine's own ids on the host; undefined if it runs with the ids on disk. */
  readonly idBase?: number;
  readonly hostKey: string;
  /** Why this server stopped the machine; undefined if it did not. */
  readonly stopped?: string;
}

export interface MachineDirectory {
  readonly id: string;
  readonly path: string;
  /** The disk as a directory; absent if it is an image. */
  readonly disk: string;
  readonly diskImage: string;
  readonly bootLog: string;
  readonly firstBoot: string;
}

export function machineDirectory(dataDir: string, id: string): MachineDirectory {
  if (!machineId.test(id)) throw new TypeError(`not a machine id: ${id}`);
  const directory = path.join(dataDir, 'machines', id);
  return {
    id,
    path: directory,
    disk: path.join(directory, 'disk'),
    diskImage: path.join(directory, 'disk.img'),
    bootLog: path.join(directory, 'boot.log'),
    firstBoot: path.join(directory, 'first-boot'),
  };
}

/** Returns the directory of a shared filesystem, which belongs to no machine. */
export function sharePath(dataDir: string, id: string): string {
  if (!/^[0-9a-z][0-9a-z-]{0,63}$/.test(id)) throw new TypeError(`not a filesystem id: ${id}`);
  return path.join(dataDir, 'filesystems', id);
}

/** Returns the image of a shared filesystem; absent if it is a directory. */
export const shareImage = (dataDir: string, id: string) => `${sharePath(dataDir, id)}.img`;

/** Lists machines by directory name, so half-created and half-removed ones are included. */
export async function listMachineIds(dataDir: string): Promise<string[]> {
  const names = await readdir(path.join(dataDir, 'machines')).catch(() => []);
  return names.filter((name) => machineId.test(name)).sort();
}

export async function findRecord(directory: MachineDirectory): Promise<MachineRecord | undefined> {
  return readJson<MachineRecord>(path.join(directory.path, 'machine.json'));
}

export async function listRecords(dataDir: string): Promise<MachineRecord[]> {
  const ids = await listMachineIds(dataDir);
  const records = await Promise.all(ids.map((id) => findRecord(machineDirectory(dataDir, id))));
  return records.filter((record) => record !== undefined);
}

export async function writeRecord(directory: MachineDirectory, record: MachineRecord) {
  await mkdir(directory.path, { recursive: true, mode: 0o700 });
  await writeJson(path.join(directory.path, 'machine.json'), record);
}

/** Returns undefined after a reboot of the host: pids and start times may repeat. */
export async function findRecordedProcess(
  directory: MachineDirectory,
): Promise<MachineProcess | undefined> {
  const file = path.join(directory.path, 'process.json');
  const recorded = await readJson<MachineProcess & { boot: string }>(file);
  return recorded?.boot === (await hostBoot()) ? recorded : undefined;
}

/** Returns the machine's processes if process 1 is alive and was started in the current isolation mode. */
export async function findRunningProcess({ host }: SandboxContext, directory: MachineDirectory) {
  const process = await findRecordedProcess(directory);
  if (!process || !(await isAlive(process.init))) return undefined;
  // A server with other rights started it: a session of ours would not see what its tenant expects.
  return process.mode === host.mode ? process : undefined;
}

export async function isRunning(context: SandboxContext, id: string): Promise<boolean> {
  return (await findRunningProcess(context, machineDirectory(context.dataDir, id))) !== undefined;
}

/** The content of `process.json`, which also holds the host's boot id. */
export interface MachineProcess {
  readonly mode: IsolationMode;
  /** Process 1 of the machine. When it ends, the kernel ends everything inside. */
  readonly init: ProcessIdentity;
  /** The `unshare` that started and waits for process 1. It holds the outer user namespace open. */
  readonly keeper: ProcessIdentity;
}

export async function writeRecordedProcess(directory: MachineDirectory, process: MachineProcess) {
  const boot = await hostBoot();
  await writeJson(path.join(directory.path, 'process.json'), { boot, ...process });
}

async function hostBoot(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}

export async function forgetProcess(directory: MachineDirectory) {
  await rm(path.join(directory.path, 'process.json'), { force: true });
}

async function readJson<Value>(file: string): Promise<Value | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Value;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Writes a temporary file, flushes it and renames it: a crash leaves the old content or the new. */
async function writeJson(file: string, value: unknown) {
  const temporary = `${file}.${randomBytes(4).toString('hex')}`;
  const handle = await open(temporary, 'w', 0o600);
  try {
    await handle.writeFile(JSON.stringify(value, null, 2));
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(temporary, file);
}
