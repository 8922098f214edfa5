// One machine on disk: what was asked for, where it runs, its host key and its files. All that is needed
// to find a machine again after a crash is here, outside of what the machine itself can see.

import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import type { MachineSpec } from '#cloud/drivers/driver.ts';
import type { IsolationMode } from '#cloud/drivers/sandbox/host.ts';
import type { ProcessIdentity } from './process-identity.ts';

const machineId = /^[0-9a-f]{32}$/;

export interface MachineRecord {
  readonly spec: MachineSpec;
  readonly ip: string;
  readonly hostKey: string;
}

export interface MachineDirectory {
  readonly id: string;
  readonly path: string;
  readonly disk: string;
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
    bootLog: path.join(directory, 'boot.log'),
    firstBoot: path.join(directory, 'first-boot'),
  };
}

/** Where a shared filesystem lies; it belongs to no machine. */
export function sharePath(dataDir: string, id: string): string {
  if (!/^[0-9a-z][0-9a-z-]{0,63}$/.test(id)) throw new TypeError(`not a filesystem id: ${id}`);
  return path.join(dataDir, 'filesystems', id);
}

/** The directory's name is the mark: a half-made or half-removed machine is listed too. */
export async function listMachineIds(dataDir: string): Promise<string[]> {
  const names = await readdir(path.join(dataDir, 'machines')).catch(() => []);
  return names.filter((name) => machineId.test(name)).sort();
}

export async function findRecord(directory: MachineDirectory): Promise<MachineRecord | undefined> {
  return readJson<MachineRecord>(path.join(directory.path, 'machine.json'));
}

export async function writeRecord(directory: MachineDirectory, record: MachineRecord) {
  await mkdir(directory.path, { recursive: true, mode: 0o700 });
  await writeJson(path.join(directory.path, 'machine.json'), record);
}

/** Undefined after a restart of the host: pids and start times may repeat there. */
export async function findRecordedProcess(
  directory: MachineDirectory,
): Promise<MachineProcess | undefined> {
  const file = path.join(directory.path, 'process.json');
  const recorded = await readJson<MachineProcess & { boot: string }>(file);
  return recorded?.boot === (await hostBoot()) ? recorded : undefined;
}

export interface MachineProcess {
  readonly mode: IsolationMode;
  /** Process 1 of the machine. It ends with everything inside. */
  readonly init: ProcessIdentity;
  /** The `unshare` that made it and waits for it; it holds the outer user namespace open. */
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

/** Written aside, flushed, then renamed: a crash leaves the old text or the new one. */
async function writeJson(file: string, value: unknown) {
  const aside = `${file}.${randomBytes(4).toString('hex')}`;
  const handle = await open(aside, 'w', 0o600);
  try {
    await handle.writeFile(JSON.stringify(value, null, 2));
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(aside, file);
}
