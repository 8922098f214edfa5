// Boots a machine: starts `unshare` with the staging script, sets up the id map and the network while the
// script waits, and records process 1 before it may continue. If this process dies earlier, the script reads
// the end of its input and exits, so nothing is left behind.

import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, readlink, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { DriverError } from '#cloud/drivers/driver.ts';
import { diskIdBase, idCount } from '#cloud/drivers/sandbox/disk/id-ranges.ts';
import { openIdMap } from '#cloud/drivers/sandbox/disk/mapped-bind.ts';
import { gpuDevices } from '#cloud/drivers/sandbox/gpus.ts';
import type { SandboxHost } from '#cloud/drivers/sandbox/host.ts';
import { listWeightFiles } from '#cloud/drivers/shared/weight-files.ts';
import { openBootLog } from './boot-log.ts';
import type { SandboxContext } from './context.ts';
import { leaveHostCommand, outerEnvironment, toUserLimits } from './leave-host.ts';
import type { MachineDirectory, MachineProcess, MachineRecord } from './machine-directory.ts';
import { findOwnProgram } from './own-program.ts';
import {
  findChild,
  findProcess,
  type ProcessIdentity,
  pollUntil,
  signalProcess,
} from './process-identity.ts';

const scripts = fileURLToPath(new URL('../scripts', import.meta.url));
const bootTimeoutMs = 30_000;

/** World-traversable directories; one becomes the staging point in a private mount namespace. */
const stagingPoints = ['/mnt', '/media', '/srv', '/opt'];

export type BootContext = Pick<SandboxContext, 'host' | 'dataDir' | 'shareOpt'>;

export async function bootMachine(
  context: BootContext,
  directory: MachineDirectory,
  record: MachineRecord,
  /** Runs while process 1 waits, to record it and attach its network. */
  prepare: (process: MachineProcess) => Promise<void>,
): Promise<void> {
  const { host } = context;
  const unshare =
    host.mode === 'none'
      ? ['/bin/sh', path.join(scripts, 'plain.sh')]
      : [
          'unshare',
          ...(host.mode === 'single' ? ['--user', '--map-root-user'] : []),
          ...['--mount', '--propagation', 'private', '/bin/sh', path.join(scripts, 'stage.sh')],
        ];
  const idBase = record.idBase ?? diskIdBase;
  const environment = await bootEnvironment(context, directory, record);
  const idMap = record.idBase === undefined ? null : await openIdMap(record.idBase);
  const log = await openBootLog(host, directory.bootLog, record.spec);
  const [program, argv] = leaveHostCommand(host, record.spec);
  const child = spawn(program, [...argv, ...unshare], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'pipe', log.input, idMap?.fd ?? 'ignore'],
    env: environment,
  });
  log.input.destroy();
  await idMap?.close();
  child.on('error', () => {});
  child.stdin!.on('error', () => {});
  const timer = setTimeout(() => child.stdout!.destroy(), bootTimeoutMs);
  try {
    let ready = false;
    for await (const line of createInterface({ input: child.stdout! })) {
      if (line === 'map') {
        const map = `0 ${idBase} ${idCount}\n`;
        await writeFile(`/proc/${child.pid}/uid_map`, map);
        await writeFile(`/proc/${child.pid}/gid_map`, map);
        child.stdin!.write('mapped\n');
      } else if (line === 'ready') {
        const started = await findMachineProcess(child.pid!, host);
        await prepare(started);
        child.stdin!.end('go\n');
        if (host.mode === 'single') await waitForUser(started);
        ready = true;
        // The output never ends: the waiting `unshare` keeps the pipe open for the machine's life.
        break;
      }
    }
    if (!ready) throw notStarted();
  } catch (error) {
    child.stdin!.destroy();
    await killBoot(child.pid ?? 0);
    await log.complete;
    throw error;
  } finally {
    clearTimeout(timer);
    child.stdout!.destroy();
    child.unref();
  }
}

/** Kills process 1 first: it would survive the `unshare` that waits for it. */
async function killBoot(pid: number) {
  const started = await Promise.all(
    [findChild(pid), pid].map(async (each) => findProcess((await each) ?? 0)),
  );
  for (const process of started) if (process) await signalProcess(process, 'SIGKILL');
}

async function findMachineProcess(pid: number, host: SandboxHost): Promise<MachineProcess> {
  const keeper = await findProcess(pid);
  const initPid = host.mode === 'none' ? pid : await findChild(pid);
  const init = initPid ? await findProcess(initPid) : undefined;
  if (!keeper || !init) throw new DriverError('unavailable', 'The machine ended while it booted.');
  return { mode: host.mode, init, keeper };
}

/**
 * An ordinary user's machine enters its second user namespace late, and a session can't join it before that. A
 * machine that ended has none, which the caller finds out.
 */
async function waitForUser({ init, keeper }: MachineProcess) {
  const namespace = ({ pid }: ProcessIdentity) =>
    readlink(`/proc/${pid}/ns/user`).catch(() => null);
  const outer = await namespace(keeper);
  const hasEntered = async () => (await namespace(init)) !== outer;
  if (!(await pollUntil(hasEntered, bootTimeoutMs))) throw notStarted();
}

/** Linux bounds a variable to 128 KiB. */
const maxWeightLineBytes = 120_000;

/** Pairs of lines: the name in the machine's folder, and the file. */
async function toWeightLines({ mode }: SandboxHost, source: string | null): Promise<string> {
  if (source === null) return '';
  const files = await listWeightFiles(source);
  // The root of such a machine is another user.
  const secret = mode === 'mapped' ? files.find(({ isPublic }) => !isPublic) : undefined;
  if (secret !== undefined) {
    const hint = `Allow it with chmod o+r ${secret.path}`;
    throw new DriverError('impossible', `Machines can't read ${secret.path}. ${hint}`);
  }
  const lines = files.map((file) => `${file.name}\n${file.path}`).join('\n');
  if (Buffer.byteLength(lines) > maxWeightLineBytes)
    throw new DriverError(
      'impossible',
      `${source} has too many files, or their names are too long. Deploy a folder with fewer files.`,
    );
  return lines;
}

const notStarted = () =>
  new DriverError('unavailable', 'The machine did not start; its boot log says why.');

async function bootEnvironment(
  { host, dataDir, shareOpt }: BootContext,
  directory: MachineDirectory,
  { spec, idBase }: MachineRecord,
): Promise<Record<string, string>> {
  const shared = shareOpt && existsSync('/opt') ? 'opt' : '';
  const used = [dataDir, process.execPath, scripts];
  const staging = stagingPoints.find(
    (point) =>
      existsSync(point) &&
      point !== `/${shared}` &&
      !used.some((file) => file.startsWith(`${point}/`)),
  );
  if (!staging) {
    const wanted = stagingPoints.join(', ');
    throw new DriverError(
      'impossible',
      `A boot needs one of ${wanted} that holds neither the data directory nor Millrace, and is not shared.`,
    );
  }
  const own = spec.runsEngine ? findOwnProgram() : null;
  return {
    ...outerEnvironment,
    OWN_FOLDER: own?.folder ?? '',
    OWN_PARTS: own?.parts.join(' ') ?? '',
    OWN_MAIN: own?.main ?? '',
    OWN_OPTIONS: [...(own?.options ?? []), helperOption(spec.vcpus)].join(' '),
    OWN_THREADS: own === null ? '' : String((await countEngineThreads(spec.vcpus)) ?? ''),
    COMPILE_CACHE: own?.compileCache ?? '',
    MODE: host.mode,
    MACHINE: directory.path,
    DATA: dataDir,
    SHARED: shared,
    ROOT: staging,
    SCRIPTS: scripts,
    NODE: process.execPath,
    CONFINE: host.confineInit ?? '',
    NAME: spec.hostname,
    USER_LIMITS: toUserLimits(host),
    ID_BASE: String(idBase ?? diskIdBase),
    MAPPED_BIND: idBase === undefined ? '' : host.mappedBind!,
    DEVICES: (await gpuDevices(spec.gpus)).join(' '),
    GPUS: `CUDA_VISIBLE_DEVICES=${spec.gpus.join(',')}`,
    FILESYSTEMS: spec.filesystems.map(({ id }) => id).join(' '),
    WEIGHTS: await toWeightLines(host, spec.weights ?? null),
    MOUNTS: spec.filesystems.map(({ id, mountPoint }) => `${id} ${mountPoint}`).join('\n'),
  };
}

/** Node starts four threads for garbage collection. With one, a start of Millrace takes 5 to 8 % less CPU time. */
const helperOption = (vcpus: number) => `--v8-pool-size=${Math.min(4, Math.max(1, vcpus - 1))}`;

/**
 * A machine sees all cores of its host, but has the time of a few. The threads of a model spin while they wait for each
 * other, so that more threads than vCPUs use up that time.
 */
export async function countEngineThreads(vcpus: number): Promise<number | null> {
  const isThreaded = await readFile('/sys/devices/system/cpu/smt/active', 'utf8').catch(() => '0');
  const cores = availableParallelism() / (isThreaded.trim() === '1' ? 2 : 1);
  return toEngineThreads(vcpus, cores);
}

/** Null if the engine may count the cores itself. One stays free for the process that answers requests. */
export const toEngineThreads = (vcpus: number, hostCores: number): number | null =>
  vcpus < hostCores ? Math.min(8, Math.max(1, vcpus - 1)) : null;
