// What `millrace doctor` checks on this computer, with or without a running server. Every check asks the code that the
// server itself relies on. It changes nothing: what the probes write is in a folder that is removed again.

import { accessSync, constants, existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { adviseHost, describeIsolation } from '#cloud/drivers/sandbox/description.ts';
import { findGpus } from '#cloud/drivers/sandbox/gpus.ts';
import { hostFolders, inspectHost } from '#cloud/drivers/sandbox/host.ts';
import { programName } from '#config/environment.ts';
import type { Config } from '#config/schema.ts';
import { openExistingDatabase, sqliteFile } from '#db/open.ts';
import { chooseKernels, inspectComputer, readDriver } from '#gpu/choose.ts';
import { GpuError } from '#gpu/errors.ts';
import { findKernels } from '#gpu/kernels.ts';
import { PullError } from '#inference/weights/errors.ts';
import { Hub } from '#inference/weights/hub.ts';
import { createDiskSpace } from '#lib/computer/disk-space.ts';
import { findModelObstacle } from '#lib/computer/llama-libraries.ts';
import { StartError, toReason } from '#lib/start-error.ts';
import { toUrl } from '#server/options/address.ts';
import { toIsolation } from '#server/options/cloud.ts';

export interface Check {
  readonly name: string;
  /** A `problem` keeps the server, or something that is configured, from working. */
  readonly status: 'ok' | 'warning' | 'problem';
  /** What was found. If it is not ok, it ends with what to do. */
  readonly message: string;
}

type Finding = Omit<Check, 'name'>;

const ok = (message: string): Finding => ({ status: 'ok', message });
const warning = (message: string): Finding => ({ status: 'warning', message });
const problem = (message: string): Finding => ({ status: 'problem', message });

/** `explainListen` turns an error of listening into a sentence. */
export async function examine(
  config: Config,
  explainListen: (error: unknown) => string,
): Promise<Check[]> {
  const folder = findExisting(resolve(config.data_dir));
  const groups = await Promise.all([
    named('Node', async () => ok(process.versions.node)),
    named('Disk', () => checkDisk(config, folder)),
    named('Port', () => checkPort(config, explainListen)),
    checkMachines(config, folder),
    named('Models', async () => checkModels()),
    named('GPU', () => checkGpus(config)),
    named('Database', () => checkDatabase(config)),
    named('Hub', () => checkHub(config)),
  ]);
  return groups.flat();
}

function checkModels(): Finding {
  const obstacle = findModelObstacle();
  return obstacle === '' ? ok('llama.cpp runs here.') : warning(`${obstacle} Use a backend.`);
}

async function named(name: string, check: () => Promise<Finding>): Promise<Check[]> {
  return [{ name, ...(await check()) }];
}

/** The data directory, or the nearest folder above it if the first start has yet to create it. */
const findExisting = (folder: string): string =>
  existsSync(folder) ? folder : findExisting(dirname(folder));

async function checkDisk({ data_dir, cloud, models }: Config, folder: string): Promise<Finding> {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    return problem(
      `The data directory ${data_dir} can't be used: ${toReason(error)}. Choose another with --data-dir, or run \`sudo chown -R $USER ${folder}\`.`,
    );
  }
  const disk = createDiskSpace(folder);
  const freeGib = (await disk.freeBytes()) / 2 ** 30;
  const free = `${freeGib.toFixed(1)} GiB are free in ${data_dir}`;
  const remedy = 'Free some space, or move data_dir to a larger disk.';
  if (await disk.isFull()) return problem(`The disk is full: ${free}. ${remedy}`);
  for (const [what, reserve] of [
    ['Machines are not launched', cloud.disk_reserve_gib],
    ['Weights are not pulled', models.disk_reserve_gib],
  ] as const) {
    if (freeGib < reserve)
      return warning(`${free}. ${what} below the reserve of ${reserve} GiB. ${remedy}`);
  }
  return ok(`${free}.`);
}

async function checkPort(
  config: Config,
  explainListen: (error: unknown) => string,
): Promise<Finding> {
  const { host, port } = config.server;
  const error = await tryListen(host, port);
  if (error === null) return ok(`${port} on ${host} is free.`);
  if (error.code === 'EADDRINUSE' && (await isMillrace(config)))
    return ok(`A Millrace server is running on ${host}:${port}.`);
  return problem(explainListen(error));
}

function tryListen(host: string, port: number): Promise<NodeJS.ErrnoException | null> {
  return new Promise((resolve) => {
    const listener = createServer()
      .once('error', resolve)
      .listen({ host, port }, () => listener.close(() => resolve(null)));
  });
}

/** Asks whether the port speaks as /readyz does. The certificate may be for another name. */
async function isMillrace(config: Config): Promise<boolean> {
  const { host: address, port } = config.server;
  const local = { ...config, server: { ...config.server, public_url: null } };
  const url = toUrl(local, { address, port });
  const { Agent, request } = await import('undici');
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  try {
    const signal = AbortSignal.timeout(5_000);
    const { headers, body } = await request(`${url}/readyz`, { dispatcher, signal });
    const { status } = (await body.json()) as { status?: unknown };
    return typeof status === 'string' && headers['x-request-id'] !== undefined;
  } catch {
    return false;
  } finally {
    await dispatcher.destroy();
  }
}

async function checkMachines(config: Config, folder: string): Promise<Check[]> {
  const { cloud } = config;
  if (cloud.driver !== 'sandbox')
    return named('Machines', async () => ok(`None here: cloud.driver is ${cloud.driver}.`));
  const probe = await mkdtemp(join(folder, '.doctor-')).catch(() => null);
  // The disk's check reports the reason.
  if (probe === null) return [];
  try {
    for (const name of hostFolders) await mkdir(join(probe, name));
    const host = await inspectHost(probe, toIsolation(config));
    if (host.obstacle !== null)
      return named('Namespaces', async () =>
        problem(
          `${describeIsolation(host)} Run the server as root or in a virtual machine, or set cloud.driver to none to run machines only on other hosts.`,
        ),
      );
    const advice = adviseHost(host);
    const isolation = [describeIsolation(host), ...advice].join(' ');
    const isSafe = advice.length === 0 && host.mode !== 'none';
    return [
      { name: 'Namespaces', ...(isSafe ? ok(isolation) : warning(isolation)) },
      {
        name: 'Network',
        ...(host.networkObstacle === null
          ? ok('`ip` and `nft` work.')
          : warning(host.networkObstacle)),
      },
    ];
  } finally {
    await rm(probe, { recursive: true, force: true });
  }
}

async function checkGpus({ data_dir }: Config): Promise<Finding> {
  const gpus = await findGpus();
  if (gpus.length === 0) {
    return (await hasNvidiaDevice())
      ? warning(
          'There is an NVIDIA GPU, but `nvidia-smi` does not list it. Install its driver: `ubuntu-drivers install` on Ubuntu, or see https://docs.nvidia.com/datacenter/tesla/driver-installation-guide.',
        )
      : ok('No NVIDIA GPU. Models run on the CPU.');
  }
  const found = `${gpus.length} × ${[...new Set(gpus.map(({ model }) => model))].join(', ')}`;
  const driver = await readDriver();
  if (findKernels(data_dir) !== null)
    return ok(`${found}${driver === null ? '' : `, driver ${driver}`}.`);
  return warning(
    `${found}. Models run on the CPU, because kernels are missing. ${await adviseKernels()}`,
  );
}

async function adviseKernels(): Promise<string> {
  try {
    chooseKernels(await inspectComputer());
    return `Run \`${programName()} gpu install\`.`;
  } catch (error) {
    if (error instanceof GpuError) return error.message;
    throw error;
  }
}

async function hasNvidiaDevice(): Promise<boolean> {
  const folder = '/sys/bus/pci/devices';
  for (const device of await readdir(folder).catch(() => [])) {
    const read = (file: string) => readFile(join(folder, device, file), 'utf8').catch(() => '');
    // 0x03: a display controller. NVIDIA also makes network cards.
    if ((await read('vendor')).trim() === '0x10de' && (await read('class')).startsWith('0x03'))
      return true;
  }
  return false;
}

async function checkDatabase({ data_dir, database }: Config): Promise<Finding> {
  const { url } = database;
  if (url === null && !existsSync(sqliteFile(data_dir)))
    return ok('SQLite. The first start creates it.');
  try {
    await (await openExistingDatabase({ url, poolSize: 1, dataDir: data_dir })).destroy();
    return ok(`${url === null ? 'SQLite' : 'PostgreSQL'} opens, and its schema is current.`);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    const remedy =
      url === null ? `restore a backup with \`${programName()} restore\`` : 'check DATABASE_URL';
    return problem(`${error.message} If that does not help, ${remedy}.`);
  }
}

/** Any repository will do: a hub that does not have it has answered. */
const anyRepo = 'millrace/doctor';
const hubTimeoutMs = 10_000;

async function checkHub({ models }: Config): Promise<Finding> {
  const hub = new Hub({ url: models.hub_url, token: models.hub_token }, { stallMs: hubTimeoutMs });
  try {
    await hub.look(
      { repo: anyRepo, revision: 'main' },
      { signal: AbortSignal.timeout(hubTimeoutMs) },
    );
  } catch (error) {
    if (!(error instanceof PullError)) throw error;
    if (error.code === 'unavailable')
      return warning(
        `${error.message} Weights can't be pulled. Check the network, or set MILLRACE_HUB_URL to a mirror.`,
      );
  } finally {
    await hub.close();
  }
  return ok(`${models.hub_url} answers.`);
}
