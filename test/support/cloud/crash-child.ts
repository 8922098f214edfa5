// The process that crash.test.ts kills: the cloud with its database and driver, which gives itself random
// commands. It writes what it has acknowledged to stdout synchronously, so that a kill can't lose it.

import assert from 'node:assert';
import { writeSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { pino } from 'pino';
import { createAudit } from '#accounts/audit/audit.ts';
import type { KeyPrincipal } from '#accounts/principal.ts';
import { createCloud } from '#cloud/cloud.ts';
import type { Driver } from '#cloud/drivers/driver.ts';
import { createDriver } from '#cloud/drivers/index.ts';
import { CloudError } from '#cloud/errors.ts';
import { createEndpoints } from '#cloud/hosts/endpoints.ts';
import { toNewRow } from '#cloud/hosts/host-changes.ts';
import { readHostId } from '#cloud/hosts/own-host.ts';
import { splitNode } from '#cloud/placement/place.ts';
import { openDatabase } from '#db/open.ts';
import { systemClock } from '#lib/clock.ts';
import { createSeal, readSealKey } from '#lib/secrets/seal.ts';
import { createRandom } from '#test/support/random.ts';

export interface CrashOptions {
  dataDir: string;
  driver: 'sandbox' | 'scripted' | 'incus';
  /** Only for `incus`. */
  endpoint?: { url: string; network: string };
  accountId: string;
  seed: number;
  /** `storm` gives random commands until it is killed; `calm` terminates everything and exits. */
  mode: 'storm' | 'calm';
}

const options = JSON.parse(process.argv[2] ?? '') as CrashOptions;
const { dataDir, accountId } = options;
const random = createRandom(options.seed);
const writeLine = (line: string) => writeSync(1, `${line}\n`);

const db = await openDatabase({ url: null, poolSize: 1, dataDir });
const region = 'us-west-1';
const driver = await openDriver();
writeLine(`found ${JSON.stringify(await compareMachines())}`);
const cloud = await createCloud(
  db,
  systemClock,
  {
    audit: createAudit(systemClock),
    drivers: {
      canOpen: () => true,
      open: async () => driver,
      enrol: () => Promise.reject(new Error('no host is enrolled in this test')),
      check: async () => [],
    },
    seal: createSeal(() => readSealKey(null, dataDir)),
    log: pino({ level: 'silent' }),
  },
  {
    ownHost:
      options.driver === 'incus'
        ? null
        : { id: readHostId(dataDir), name: 'here', region, driver: options.driver },
    hosts: options.endpoint ? [{ name: 'there', region, ...options.endpoint }] : [],
    hostGraceMs: 15_000,
    emulate: false,
    emulatedInstances: 1,
    prices: {},
    instancesPerAccount: 1000,
    filesystemsPerAccount: 24,
    rulesetsPerAccount: 10,
    sshKeysPerAccount: 10,
    leaseMs: 10_000,
    singleServer: true,
    system: 'test',
    architecture: 'x86_64',
  },
);
const principal: KeyPrincipal = {
  kind: 'key',
  role: 'owner',
  keyId: '0'.repeat(32),
  accountId,
  scopes: ['cloud'],
  address: '127.0.0.1',
};
await cloud.hosts.refresh();
// The cache would be written at exit, which a killed process does not reach.
flushCompileCache();
cloud.reconciler.start();
writeLine('ready');
await (options.mode === 'storm' ? storm() : calm());

async function openDriver(): Promise<Driver> {
  const log = () => {};
  if (options.driver !== 'incus') {
    return createDriver(options.driver, { dataDir, isolation: 'auto', log });
  }
  const { url = '', network } = options.endpoint ?? {};
  const certificate = () => assert.fail('a unix socket needs no certificate');
  const endpoints = createEndpoints({
    ...{ installationId: readHostId(dataDir), serverId: readHostId(dataDir) },
    ...{ certificate, log },
  });
  return endpoints.open(
    toNewRow({ name: 'there', region, network }, { url, fingerprint: null }, Date.now()),
  );
}

/** Machines without an instance, and booted instances without a machine. */
async function compareMachines(): Promise<{ orphans: string[]; lost: string[] }> {
  const machines = await driver.list();
  const rows = await db.selectFrom('instances').select(['id', 'status', 'booted_at']).execute();
  const living = new Set(rows.flatMap(({ id, status }) => (status === 'terminated' ? [] : [id])));
  const booted = rows.filter(({ status, booted_at }) => status === 'active' && booted_at !== null);
  return {
    orphans: machines.filter((id) => !living.has(id)),
    lost: booted.map(({ id }) => id).filter((id) => !machines.includes(id)),
  };
}

async function storm(): Promise<never> {
  for (;;) {
    await pause(random(10));
    // A second termination changes nothing. It would only use up the commands before the next kill.
    const instances = (await cloud.instances.list(accountId)).filter(
      ({ status }) => status !== 'terminating',
    );
    const { id } = instances[random(instances.length)] ?? { id: '' };
    try {
      switch (random(4)) {
        case 0:
        case 1:
          writeLine(`launched ${await launch()}`);
          break;
        case 2:
          if (id === '') break;
          await cloud.instances.restart(principal, [id], 'restart');
          writeLine(`restarted ${id}`);
          break;
        default:
          if (id === '' || instances.length < 2) break;
          await cloud.instances.terminate(principal, [id]);
          writeLine(`terminated ${id}`);
      }
    } catch (error) {
      // No capacity, busy or just gone: errors that a client would get.
      if (!(error instanceof CloudError)) throw error;
    }
  }
}

function launch(): Promise<string> {
  return cloud.launch(principal, {
    region_name: region,
    instance_type_name: 'cpu_1x_general',
    ssh_key_names: ['laptop'],
  });
}

async function calm(): Promise<void> {
  await terminateAll();
  writeLine(`found ${JSON.stringify({ orphans: await driver.list(), lost: [] })}`);
  let launches = 0;
  while (await launch().then(Boolean, () => false)) launches++;
  const vcpus = cloud.hosts.places().reduce((sum, place) => sum + splitNode(place).cpuVcpus, 0);
  writeLine(`capacity ${launches} of ${vcpus}`);
  await terminateAll();
  await cloud.reconciler.stop();
  await driver.close();
  await db.destroy();
}

async function terminateAll(): Promise<void> {
  const living = await cloud.instances.list(accountId);
  await cloud.instances.terminate(
    principal,
    living.map(({ id }) => id),
  );
  const deadline = Date.now() + 60_000;
  for (;;) {
    const { data: left } = await cloud.details.list(accountId, { limit: 1 });
    if (left.length === 0) return;
    if (Date.now() > deadline)
      throw new Error(`not terminated within a minute: ${JSON.stringify(left)}`);
    await pause(20);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
