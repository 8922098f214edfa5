// A server that is killed leaves no engine behind, and the next one starts what is needed. The engine is the built-in one,
// in a process of its own.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { builtinModel } from '#inference/engines/local/builtin.ts';
import { testEngine } from '#test/support/deployments.ts';
import { startHub } from '#test/support/hub.ts';
import {
  makeFolder,
  type RunningProcess,
  runMillrace,
  serveMillrace,
} from '#test/support/process.ts';
import { password } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const model = 'hermes3-8b';
const key = 'secret_test_00000000000000000000000000000000.abcdefghijklmnopqrstuvwxyz012345';
const home = makeFolder();

const run = (parameters: string[], input = '') =>
  runMillrace(parameters, { env: { XDG_CONFIG_HOME: home }, input });
const serve = (...parameters: string[]) => serveMillrace(parameters, { MILLRACE_API_KEY: key });

/** The engines: processes whose working directory is the folder of a replica. */
function enginesOf(dataDir: string): string[] {
  const folder = join(dataDir, 'replicas');
  return readdirSync('/proc').filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/cwd`).startsWith(folder);
    } catch {
      return false;
    }
  });
}

async function chat({ url }: Pick<RunningProcess, 'url'>): Promise<string | null> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 2 }),
  });
  assert.equal(response.status, 200, await response.text());
  return response.headers.get('x-served-by');
}

test('kill -9 of the server ends its engines, and the next server starts them on demand', async () => {
  const dataDir = makeFolder();
  // Relative, as the default is.
  const served = await serve('--data-dir', relative(makeFolder(), dataDir));
  const first = { ...served, dataDir };
  const link = readFileSync(join(dataDir, 'setup-link'), 'utf8').trim();
  const login = await run(['login', '--link', link, '--email', 'me@example.com'], `${password}\n`);
  assert.equal(login.code, 0, login.stderr);
  const deploy = ['deploy', model, '--engine', 'builtin', '--source', builtinModel.modelPath];
  const deployed = await run([...deploy, '--name', 'small']);
  assert.match(deployed.stdout, /small answers/, deployed.stderr);
  assert.match((await chat(first)) ?? '', /^small-/);
  assert(enginesOf(first.dataDir).length > 0);

  first.child.kill('SIGKILL');
  await first.ended;
  await until('no engine is left', () => enginesOf(first.dataDir).length === 0);

  const second = await serve('--data-dir', first.dataDir);
  assert.match((await chat(second)) ?? '', /^small-/);
  second.child.kill('SIGTERM');
  await second.ended;
  assert.deepEqual(enginesOf(first.dataDir), []);
  assert.deepEqual(readdirSync(join(first.dataDir, 'replicas')), []);
});

test('kill -9 while weights are fetched loses nothing, and no byte is fetched twice', async () => {
  const hub = await startHub();
  const files = { 'config.json': Buffer.from('{}'), 'model.safetensors': randomBytes(400_000) };
  hub.add('acme/small', files);
  hub.pauseAfter(150_000);
  const dataDir = makeFolder();
  const settings = { ...testEngine, model, source: 'acme/small', min: 1 };
  const config = join(dataDir, 'millrace.yaml');
  writeFileSync(
    config,
    JSON.stringify({
      models: { hub_url: hub.url, disk_reserve_gib: 0 },
      deployments: { small: settings },
    }),
  );
  const first = await serve('--data-dir', dataDir, '--config', config);
  const part = join(dataDir, 'models/acme--small/safetensors/model.safetensors.part');
  await until('half of it is there', () => existsSync(part) && statSync(part).size === 150_000);
  first.child.kill('SIGKILL');
  await first.ended;
  hub.release();
  const sent = hub.bytesSent();

  const second = await serve('--data-dir', dataDir, '--config', config);
  assert.match((await chat(second)) ?? '', /^small-/);
  assert.equal(hub.bytesSent() - sent, 250_000);
  second.child.kill('SIGTERM');
  await second.ended;
});
