// The npm package in an empty folder, as `npm install` unpacks it: its program runs, serves the dashboard, chats and
// launches a machine, and with its dependencies it is no larger than promised. A checkout without development packages
// serves the dashboard too.

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { x } from 'tar';
import { needsSandbox } from '#test/support/cloud/sandbox-programs.ts';
import { makeFolder, readFirstSecret } from '#test/support/process.ts';
import { until } from '#test/support/until.ts';
import millrace from '../package.json' with { type: 'json' };

const root = join(import.meta.dirname, '..');

/** Packs it and unpacks it as a global installation. Returns its prefix. */
async function install(): Promise<string> {
  const prefix = makeFolder();
  execFileSync(process.execPath, ['tools/build.ts'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  pack(['./dist', '--pack-destination', prefix]);
  const folder = join(prefix, 'lib/node_modules/millrace');
  mkdirSync(folder, { recursive: true });
  await x({ file: join(prefix, `millrace-${millrace.version}.tgz`), cwd: folder, strip: 1 });
  // Not downloaded again. The links are those that npm makes.
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  mkdirSync(join(prefix, 'bin'));
  symlinkSync('../lib/node_modules/millrace/millrace', join(prefix, 'bin/millrace'));
  return prefix;
}

const pack = (args: readonly string[]) =>
  execFileSync('npm', ['pack', ...args], { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] });

/** Bytes of the files in a folder, without packages that are nested in it. */
function measure(folder: string): number {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isFile()) bytes += statSync(path).size;
    else if (entry.isDirectory() && entry.name !== 'node_modules') bytes += measure(path);
  }
  return bytes;
}

/** Paths below the checkout of what `npm ci --omit=dev` installs. */
function findProductionPackages(): string[] {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean }>;
  };
  return Object.entries(lock.packages)
    .filter(([path, { dev }]) => path !== '' && dev !== true && existsSync(join(root, path)))
    .map(([path]) => path);
}

let prefix: string;
before(async () => {
  prefix = await install();
});

test('the package and its dependencies take at most 350 MiB', () => {
  const folders = findProductionPackages().map((path) => join(root, path));
  const all = [join(prefix, 'lib/node_modules/millrace'), ...folders].map(measure);
  const mebibytes = all.reduce((sum, bytes) => sum + bytes, 0) / 2 ** 20;
  assert.ok(mebibytes > 100 && mebibytes <= 350, `${mebibytes} MiB`);
});

test('a package that was packed without a build says so', async () => {
  const folder = makeFolder();
  pack(['--pack-destination', folder]);
  await x({ file: join(folder, `millrace-${millrace.version}.tgz`), cwd: folder, strip: 1 });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const { status, stderr } = spawnSync(join(folder, 'millrace'), ['--version'], {
    encoding: 'utf8',
  });
  assert.deepEqual([status, stderr.includes('npm run package')], [1, true]);
});

test('the packed program serves the dashboard, chats and launches a machine', {
  skip: needsSandbox(),
}, async () => {
  const program = join(prefix, 'bin/millrace');
  const env = { PATH: process.env.PATH ?? '', HOME: prefix };
  assert.equal(
    execFileSync(program, ['--version'], { env, encoding: 'utf8' }).trim(),
    millrace.version,
  );
  writeFileSync(join(prefix, 'millrace.yaml'), 'cloud: { requests_per_second: 1000 }\n');
  const server = spawn(program, ['serve', '--port', '0', '--data-dir', join(prefix, 'data')], {
    cwd: prefix,
    env,
  });
  after(() => server.kill('SIGKILL'));
  let output = '';
  for await (const text of server.stdout.setEncoding('utf8')) {
    output += text;
    if (output.includes('API docs')) break;
  }
  assert.doesNotMatch(output, /must exist/);
  const url = /Inference API\s+(\S+)\/v1/.exec(output)?.[1];
  const key = readFirstSecret(output, 'First API key');
  const call = async (path: string, body?: object) => {
    const response = await fetch(`${url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    assert.equal(response.status, 200, text);
    return JSON.parse(text);
  };
  const page = await fetch(`${url}/`, { headers: { accept: 'text/html' } });
  assert.match(await page.text(), /<div id="root">/);
  const answer = await call('/v1/chat/completions', {
    model: 'llama3.1-8b-instruct',
    max_tokens: 4,
    messages: [{ role: 'user', content: 'Hi' }],
  });
  assert.ok(answer.usage.completion_tokens > 0);

  await call('/api/v1/ssh-keys', { name: 'laptop' });
  const { data } = await call('/api/v1/instance-operations/launch', {
    region_name: 'us-west-1',
    instance_type_name: 'cpu_1x_general',
    ssh_key_names: ['laptop'],
  });
  const path = `/api/v1/instances/${data.instance_ids[0]}`;
  await until('the machine is active', async () => (await call(path)).data.status === 'active');
  await call('/api/v1/instance-operations/terminate', { instance_ids: data.instance_ids });
  await until(
    'the machine is gone',
    async () => ((await call('/api/v1/instances')).data as unknown[]).length === 0,
  );
});

/** A checkout after `npm ci --omit=dev`. */
function checkOut(): string {
  const checkout = makeFolder();
  const files = ['.npmrc', 'docs', 'millrace', 'model', 'package-lock.json', 'package.json'];
  for (const name of [...files, 'src', 'tsconfig.json', 'web']) {
    cpSync(join(root, name), join(checkout, name), {
      recursive: true,
      filter: (path) => path !== join(root, 'web/dist'),
    });
  }
  const topmost = findProductionPackages().filter((path) => !path.includes('/node_modules/'));
  for (const path of [...topmost, 'node_modules/.bin']) {
    mkdirSync(dirname(join(checkout, path)), { recursive: true });
    symlinkSync(join(root, path), join(checkout, path));
  }
  return checkout;
}

/** An npm that links the packages of this checkout. */
function writeNpm(): string {
  const folder = makeFolder();
  const script = `#!/bin/sh
[ "$*" = "ci --include=dev" ] && ln -s "${root}/node_modules" node_modules
`;
  writeFileSync(join(folder, 'npm'), script, { mode: 0o755 });
  return folder;
}

test('a checkout without development packages serves the dashboard and keeps no build tools', async () => {
  execFileSync(process.execPath, ['web/build.ts'], { cwd: root });
  const checkout = checkOut();
  const server = spawn('./millrace', ['serve', '--port', '0', '--data-dir', 'data'], {
    cwd: checkout,
    env: { PATH: `${writeNpm()}:${process.env.PATH}` },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  after(() => server.kill('SIGKILL'));
  let output = '';
  for await (const text of server.stdout.setEncoding('utf8')) {
    output += text;
    if (output.includes('API docs')) break;
  }
  const url = /Inference API\s+(\S+)\/v1/.exec(output)?.[1];
  for (const path of ['/', '/docs', '/help/']) {
    await until(`${path} is served`, async () => {
      const { status } = await fetch(`${url}${path}`, { headers: { accept: 'text/html' } });
      return status === 200;
    });
  }
  await until('the copy is removed', () =>
    readdirSync(join(checkout, 'web/dist')).every((name) => !name.startsWith('.')),
  );
});
