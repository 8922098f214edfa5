// An installation whose deployment is broken on purpose: the real program, real machines, and views of what really runs.

import assert from 'node:assert/strict';
import { chmodSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { createSandboxDriver } from '#cloud/drivers/sandbox/sandbox.ts';
import { openDatabase } from '#db/open.ts';
import type { Database } from '#db/tables/tables.ts';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import { createDatabase, type DatabaseKind } from './databases.ts';
import { makeWeights } from './deployments.ts';
import { makeFolder, type RunningProcess, readFirstSecret, serveMillrace } from './process.ts';
import { cookieOf, password } from './server.ts';
import { until } from './until.ts';

export type Victim = 'server' | 'engine' | 'machine' | 'host';

const model = 'hermes3-8b';
const key = 'secret_test_00000000000000000000000000000000.abcdefghijklmnopqrstuvwxyz012345';
const enginePath = join(import.meta.dirname, 'deployed-engine.ts');
const engine = readFileSync(enginePath, 'utf8');
const setup = `cat >engine.ts <<'TEXT'\n${engine}\nTEXT\n`;
const places = {
  host: { runs_on: 'host', engine: 'command', program: process.execPath, args: [enginePath] },
  machine: {
    ...{ runs_on: 'cpu_1x_general', setup },
    ...{ engine: 'command', program: '/run/machine/node', args: ['engine.ts'] },
  },
};
/** The same engine, started as one that sleeps. */
const sleepers = {
  host: () => ({
    ...{ runs_on: 'host', source: makeWeights(), check_memory: false },
    ...{ engine: 'sglang', program: writeProgram(`${process.execPath} ${enginePath}`) },
  }),
  machine: () => ({
    ...{ runs_on: 'cpu_1x_general', source: '/nowhere', engine: 'vllm', program: './vllm' },
    setup: `${setup}printf '#!/bin/sh\\nexec /run/machine/node engine.ts "$@"\\n' >vllm; chmod 700 vllm`,
  }),
};

function writeProgram(command: string): string {
  const program = join(makeFolder(), 'engine');
  writeFileSync(program, `#!/bin/sh\nexec ${command} "$@"\n`);
  chmodSync(program, 0o755);
  return program;
}

export type Place = keyof typeof places;
/** The step of the ladder that an idle replica takes after a second; null for none. */
export type IdleStep = 'asleep' | 'stopped' | null;

/** What runs of the deployment, by what is seen from outside the server. */
export interface Running {
  readonly machines: readonly string[];
  readonly engines: number;
  readonly replicaRows: readonly string[];
  readonly instanceRows: readonly string[];
}

export class KilledDeployment {
  #server: RunningProcess;
  readonly #dataDir: string;
  readonly #database: string | null;
  readonly #db: Database;
  /** In the environment of the engines of this installation. */
  readonly #mark = `MARK=${process.pid}-${Date.now()}`;
  #cookie = '';

  private constructor(server: RunningProcess, database: string | null, db: Database) {
    this.#server = server;
    this.#dataDir = server.dataDir;
    this.#database = database;
    this.#db = db;
  }

  static async open(kind: DatabaseKind): Promise<KilledDeployment> {
    const { url } = await createDatabase(kind);
    const server = await serve(url);
    const db = await openDatabase({ url, poolSize: 1, dataDir: server.dataDir });
    const opened = new KilledDeployment(server, url, db);
    const token = readFirstSecret(server.stdout(), 'Set-up link').split('/').at(-1);
    const person = { token, email: 'me@example.com', password };
    opened.#cookie = cookieOf(await opened.send('POST', '/dashboard/api/join', person));
    return opened;
  }

  async close(): Promise<void> {
    await this.#endServer();
    await this.#db.destroy();
    const driver = await createSandboxDriver({ dataDir: this.#dataDir });
    for (const id of await driver.list()) await driver.terminate(id);
    await driver.close();
  }

  send(method: string, path: string, json?: unknown): Promise<Response> {
    const { url } = this.#server;
    return fetch(`${url}${path}`, {
      method,
      headers: { cookie: this.#cookie, origin: url, 'content-type': 'application/json' },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
  }

  async create(place: Place, step: IdleStep, env: Record<string, string>): Promise<void> {
    const [name, value] = this.#mark.split('=') as [string, string];
    const created = await this.send('POST', '/api/v1/deployments', {
      ...{ name: 'tested', model, ...(step === 'asleep' ? sleepers[place]() : places[place]) },
      ...(step !== null && { ladder: { [step]: 1 } }),
      env: { ...env, [name]: value },
    });
    assert.equal(created.status, 200, await created.text());
  }

  /** Lets replicas serve for longer. */
  async keepAwake(step: IdleStep): Promise<void> {
    if (step === null) return;
    const ladder = { [step]: 600, gone: 3_600 };
    const changed = await this.send('POST', '/api/v1/deployments/tested', { ladder });
    assert.equal(changed.status, 200, await changed.text());
  }

  async show(): Promise<DeploymentView> {
    const response = await this.send('GET', '/api/v1/deployments/tested');
    return ((await response.json()) as { data: DeploymentView }).data;
  }

  async chat(given: object = {}): Promise<{ status: number; text: string }> {
    const response = await fetch(`${this.#server.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }], ...given }),
    });
    return { status: response.status, text: await response.text() };
  }

  /** Names of the backends that deployments gave the model. */
  async backends(): Promise<string[]> {
    const response = await this.send('GET', '/dashboard/api/backends?limit=100');
    const { data } = (await response.json()) as { data: { name: string; source: string }[] };
    return data.filter(({ source }) => source === 'deployment').map(({ name }) => name);
  }

  async running(): Promise<Running> {
    const replicas = await this.#db.selectFrom('replicas').select('id').execute();
    const instances = await this.#db
      .selectFrom('instances')
      .select('id')
      .where('status', '!=', 'terminated')
      .execute();
    return {
      machines: this.#machines(),
      engines: this.#engines().length,
      replicaRows: replicas.map(({ id }) => id),
      instanceRows: instances.map(({ id }) => id),
    };
  }

  hasEngine = () => this.#engines().length > 0;

  /** Kills it with SIGKILL after a while. The server is started again if it was killed. */
  async kill(victim: Victim, delayMs: number): Promise<void> {
    await pause(delayMs);
    const endsServer = victim === 'server' || victim === 'host';
    if (endsServer) await this.#endServer();
    if (victim === 'machine')
      await until('there is a machine', () => this.#machineProcesses().length > 0);
    if (victim === 'machine' || victim === 'host') this.#machineProcesses().forEach(killProcess);
    if (victim === 'engine' || victim === 'host') this.#engines().forEach(killProcess);
    if (endsServer) this.#server = await serve(this.#database, this.#dataDir);
  }

  async #endServer(): Promise<void> {
    this.#server.child.kill('SIGKILL');
    await this.#server.ended;
  }

  #machines = () => readdirSync(join(this.#dataDir, 'machines')).sort();

  /** Process 1 of each machine. */
  #machineProcesses(): number[] {
    return this.#machines().flatMap((id) => {
      const record = read(join(this.#dataDir, 'machines', id, 'process.json'));
      return record === '' ? [] : [(JSON.parse(record) as { init: { pid: number } }).init.pid];
    });
  }

  #engines(): number[] {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    return pids.filter((pid) => isNode(pid) && environmentOf(pid).includes(this.#mark)).map(Number);
  }
}

function serve(database: string | null, dataDir?: string): Promise<RunningProcess> {
  const config = join(makeFolder(), 'millrace.yaml');
  const catalog = { [model]: { continue_streams: true } };
  writeFileSync(config, JSON.stringify({ models: { catalog }, inference: { preload: false } }));
  return serveMillrace(
    ['--config', config, ...(dataDir === undefined ? [] : ['--data-dir', dataDir])],
    { MILLRACE_API_KEY: key, ...(database !== null && { DATABASE_URL: database }) },
  );
}

const environmentOf = (pid: string) => read(`/proc/${pid}/environ`).split('\0');

function isNode(pid: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/exe`).endsWith('/node');
  } catch {
    return false;
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
