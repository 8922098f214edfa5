// The npm package in an empty folder, as `npm install` unpacks it: its program runs, serves the dashboard and chats.

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { x } from 'tar';
import { makeFolder } from '#test/support/process.ts';
import millrace from '../package.json' with { type: 'json' };

const root = join(import.meta.dirname, '..');

test('the packed program prints its version, serves the dashboard and chats', async () => {
  const prefix = makeFolder();
  const scripts = ['--ignore-scripts=false', '--pack-destination', prefix];
  execFileSync('npm', ['pack', ...scripts], { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] });
  const folder = join(prefix, 'lib/node_modules/millrace');
  mkdirSync(folder, { recursive: true });
  await x({ file: join(prefix, `millrace-${millrace.version}.tgz`), cwd: folder, strip: 1 });
  assert.ok(
    !existsSync(join(folder, 'src')),
    'the package has sources, which Node can’t run there',
  );
  // Not installed again: a gigabyte. The links are those that npm makes.
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  mkdirSync(join(prefix, 'bin'));
  const program = join(prefix, 'bin/millrace');
  symlinkSync('../lib/node_modules/millrace/millrace', program);

  const env = { PATH: process.env.PATH ?? '', HOME: prefix };
  assert.equal(
    execFileSync(program, ['--version'], { env, encoding: 'utf8' }).trim(),
    millrace.version,
  );
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
  const url = /Inference API\s+(\S+)\/v1/.exec(output)?.[1];
  const key = /secret_\S+/.exec(output)?.[0];
  const page = await fetch(`${url}/`);
  assert.match(await page.text(), /<div id="root">/);
  const chat = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({
      model: 'llama3.1-8b-instruct',
      max_tokens: 4,
      messages: [{ role: 'user', content: 'Hi' }],
    }),
  });
  const answer = (await chat.json()) as { usage: { completion_tokens: number } };
  assert.equal(chat.status, 200, JSON.stringify(answer));
  assert.ok(answer.usage.completion_tokens > 0);
});
