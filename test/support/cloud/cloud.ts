// The cloud API in this process: a real database, the scripted driver, a clock turned by hand and a
// reconciler that works when a test says so. Requests go in by inject().

import assert from 'node:assert';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import cookie from '@fastify/cookie';
import Fastify, { type FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { createAudit, system } from '#accounts/audit/audit.ts';
import { createAuthenticator } from '#accounts/authenticate.ts';
import { createApiKeys } from '#accounts/keys/api-keys.ts';
import { unlimited } from '#accounts/limits/limit-set.ts';
import { createLimitSettings } from '#accounts/limits/settings.ts';
import { createDevices } from '#accounts/people/devices.ts';
import { Invitations } from '#accounts/people/invitations.ts';
import { createPasswordResets } from '#accounts/people/password-resets.ts';
import { Sessions } from '#accounts/people/sessions.ts';
import { SignIn } from '#accounts/people/sign-in.ts';
import { createThrottle } from '#accounts/people/throttle.ts';
import type { CloudLimits } from '#cloud/api/limits.ts';
import { cloudRoutes } from '#cloud/api/routes.ts';
import { type Cloud, type CloudOptions, createCloud } from '#cloud/cloud.ts';
import {
  createScriptedDriver,
  type ScriptedDriver,
  type ScriptedOptions,
} from '#cloud/drivers/scripted.ts';
import type { HostDrivers } from '#cloud/hosts/host-drivers.ts';
import type { Instance, SshKey } from '#cloud/schema.ts';
import { openDatabase } from '#db/open.ts';
import type { HostRow } from '#db/tables/cloud-rows.ts';
import type { Database } from '#db/tables/tables.ts';
import { BodyRoom } from '#http/body/room.ts';
import { newId } from '#lib/ids.ts';
import { createRateLimiter } from '#lib/limits/rate-limit.ts';
import { validatorOptions } from '#lib/schema/validator.ts';
import { createSeal, readSealKey } from '#lib/secrets/seal.ts';
import { createHandClock, type HandClock } from '#test/support/clock.ts';
import { createDatabase, type DatabaseKind, stopOwnPostgres } from '#test/support/databases.ts';

export interface TestCloud {
  app: FastifyInstance;
  cloud: Cloud;
  db: Database;
  driver: ScriptedDriver;
  clock: HandClock;
  accountId: string;
  key: string;
  /** Another process on the same database and the same host; or with a host of its own. */
  another(own?: { id: string; driver: ScriptedDriver }): Promise<Cloud>;
  /** A host that every process reaches. */
  addHost(
    name: string,
    region: string,
    options?: ScriptedOptions,
    row?: Partial<HostRow>,
  ): Promise<ScriptedDriver>;
  /** Turns the clock and looks at the hosts. */
  refreshAfter(ms: number): Promise<void>;
  /** Another account's key. */
  stranger(): Promise<string>;
  call<Data = unknown>(
    method: string,
    path: string,
    body?: unknown,
    key?: string,
  ): Promise<Answer<Data>>;
  /** Turns the clock in small steps until the reconciler has nothing to do. */
  settle(): Promise<void>;
  addKey(name?: string): Promise<string>;
  /** Launches with sensible defaults and answers the id. */
  launch(over?: Record<string, unknown>): Promise<string>;
  /** Launches and waits for `active`. */
  launchActive(over?: Record<string, unknown>): Promise<string>;
  instance(id: string): Promise<Instance>;
}

export interface Answer<Data> {
  status: number;
  headers: Record<string, unknown>;
  body: {
    data: Data;
    error: { code: string; message: string; suggestion?: string };
    page_token?: string | null;
  };
}

interface Launched {
  instance_ids: string[];
}

const cleanups: (() => Promise<unknown>)[] = [];
after(async () => {
  for (const cleanup of cleanups.reverse()) await cleanup();
  await stopOwnPostgres();
});

export const publicKey = makePublicKey();

export async function startCloud(
  database: DatabaseKind = 'sqlite',
  options: Partial<CloudOptions> & {
    driver?: ScriptedOptions;
    limits?: CloudLimits;
    region?: string;
  } = {},
): Promise<TestCloud> {
  const dataDir = await mkdtemp(join(tmpdir(), 'millrace-cloud-'));
  const { url, drop } = await createDatabase(database);
  const db = await openDatabase({ url, poolSize: 10, dataDir });
  const clock = createHandClock();
  const audit = createAudit(clock);
  const log = pino({ level: 'silent' });
  const seal = createSeal(() => readSealKey(null, dataDir));
  const limitSettings = createLimitSettings(db, clock, audit, {
    keyDefaults: unlimited,
    otherServers: null,
  });
  const apiKeys = createApiKeys(db, clock, audit, { limitSettings });
  const sessions = new Sessions(db, clock, audit, { sessionDays: 1 });
  const invitations = new Invitations(db, clock, audit, { invitationDays: 1 });
  const throttle = createThrottle(db, clock);
  const signIn = new SignIn(
    db,
    clock,
    {
      audit,
      sessions,
      devices: createDevices(db, clock),
      throttle,
      invitations,
      passwordResets: createPasswordResets(db, clock, audit),
    },
    { loginAttempts: 10 },
  );
  const { id: accountId } = await signIn.ensureAccount();
  const newKey = async (account: string) => {
    const input = { label: 'test', scopes: ['cloud'] as const, expiresAt: null };
    return (await apiKeys.create(account, input, system)).key;
  };
  const key = await newKey(accountId);
  const driver = createScriptedDriver(options.driver);
  const driverOf = new Map([[ownHostId, driver]]);
  const make = (own = { id: ownHostId, driver }) => {
    driverOf.set(own.id, own.driver);
    const drivers: HostDrivers = {
      canOpen: (host) => host.id === own.id || host.source !== 'builtin',
      open: async ({ id }) => driverOf.get(id) ?? assert.fail('no such host'),
      enrol: () => assert.fail('nothing is enrolled here'),
      check: async () => [],
    };
    const ownHost = {
      id: own.id,
      name: 'here',
      region: options.region ?? 'us-west-1',
      driver: 'scripted' as const,
    };
    const all = { ...defaults, ownHost, ...options };
    return createCloud(db, clock, { audit, drivers, seal, log }, all);
  };
  const cloud = await make();
  const app = Fastify({
    ajv: { customOptions: validatorOptions },
    routerOptions: { maxParamLength: 512, ignoreDuplicateSlashes: true },
  });
  await app.register(cookie);
  const parts = {
    authenticator: createAuthenticator(apiKeys, sessions, { secure: false, clock }),
    limiter: createRateLimiter(clock),
    limits: options.limits ?? { requests: null, launches: null },
    cloud,
    bodyRoom: new BodyRoom({
      maxBytes: 2 ** 26,
      maxCallerBytes: 2 ** 25,
      maxWaiting: 16,
      maxCallerWaiting: 8,
      waitMs: 10_000,
    }),
  };
  app.register(async (scope) => cloudRoutes(scope, parts), { prefix: '/api/v1' });
  cleanups.push(async () => {
    await app.close();
    await cloud.reconciler.stop();
    await db.destroy();
    await drop();
    await rm(dataDir, { recursive: true, force: true });
  });

  const call: TestCloud['call'] = async (method, path, body, as = key) => {
    const response = await app.inject({
      method: method as 'GET',
      url: `/api/v1${path}`,
      headers: {
        authorization: `Bearer ${as}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
    });
    return { status: response.statusCode, headers: response.headers, body: response.json() };
  };

  async function settle() {
    for (let turn = 0; turn < 500; turn++) {
      await cloud.reconciler.settle();
      const next = await db
        .selectFrom('instances')
        .select((row) => row.fn.min('due_at').as('at'))
        .where('due_at', 'is not', null)
        .executeTakeFirst();
      if (next?.at == null) return;
      clock.turn(Math.max(1, next.at - clock.now()));
    }
    assert.fail('the reconciler never came to rest');
  }

  async function addKey(name = 'laptop') {
    const input = { name, public_key: publicKey };
    const { status, body } = await call<SshKey>('POST', '/ssh-keys', input);
    assert.equal(status, 200, JSON.stringify(body));
    return body.data.id;
  }

  async function launch(over: Record<string, unknown> = {}) {
    const { status, body } = await call<Launched>('POST', '/instance-operations/launch', {
      region_name: 'us-west-1',
      instance_type_name: 'cpu_1x_general',
      ssh_key_names: ['laptop'],
      ...over,
    });
    assert.equal(status, 200, JSON.stringify(body));
    return body.data.instance_ids[0] as string;
  }

  async function instance(id: string) {
    const { status, body } = await call<Instance>('GET', `/instances/${id}`);
    assert.equal(status, 200, JSON.stringify(body));
    return body.data;
  }

  const addHost: TestCloud['addHost'] = async (name, region, of, row) => {
    const made = createScriptedDriver(of);
    const id = newId();
    driverOf.set(id, made);
    await db
      .insertInto('hosts')
      .values({ ...emptyHost, id, name, region, created_at: clock.now(), ...row })
      .execute();
    await cloud.hosts.refresh();
    return made;
  };

  await addKey();
  return {
    app,
    cloud,
    db,
    driver,
    clock,
    accountId,
    key,
    another: make,
    addHost,
    async refreshAfter(ms) {
      clock.turn(ms);
      await cloud.hosts.refresh();
    },
    async stranger() {
      const id = 'f'.repeat(32);
      await db
        .insertInto('accounts')
        .values({ id, name: 'other', created_at: clock.now() })
        .execute();
      return newKey(id);
    },
    call,
    settle,
    addKey,
    launch,
    async launchActive(over) {
      const id = await launch(over);
      await settle();
      assert.equal((await instance(id)).status, 'active');
      return id;
    },
    instance,
  };
}

export const ownHostId = 'a'.repeat(32);

const emptyHost: Omit<HostRow, 'id' | 'name' | 'region' | 'created_at'> = {
  driver: 'incus',
  source: 'live',
  url: 'https://127.0.0.1:9',
  target: null,
  fingerprint: null,
  pool: null,
  network: null,
  project: null,
  filesystems_path: null,
  extras: '{}',
  draining: 0,
  seen_at: null,
  status: 'offline',
  reason: null,
  report: null,
};

const defaults: CloudOptions = {
  ownHost: null,
  hosts: [],
  hostGraceMs: 15_000,
  emulate: false,
  emulatedInstances: 16,
  prices: {},
  instancesPerAccount: 100,
  filesystemsPerAccount: 24,
  rulesetsPerAccount: 100,
  sshKeysPerAccount: 1024,
  leaseMs: 10_000,
  singleServer: false,
  system: 'Debian GNU/Linux 12 (bookworm)',
  architecture: 'x86_64',
};

function makePublicKey(): string {
  const { publicKey: key } = generateKeyPairSync('ed25519');
  const raw = key.export({ type: 'spki', format: 'der' }).subarray(-32);
  const field = (bytes: Buffer) => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  const blob = Buffer.concat([field(Buffer.from('ssh-ed25519')), field(raw)]);
  return `ssh-ed25519 ${blob.toString('base64')} test`;
}
