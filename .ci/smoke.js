// Uses a server as its README says, with nothing but the Node that npm runs on: starts it with the given command, reads
// what it prints, opens the dashboard, chats and launches a machine. A machine may fail only with a reason.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const [program, ...args] = process.argv.slice(2);
assert.ok(program, 'usage: node .ci/smoke.js COMMAND...');

const data = mkdtempSync(join(tmpdir(), 'millrace-smoke-'));
const server = spawn(program, [...args, '--port', '0', '--data-dir', data], {
  stdio: ['ignore', 'pipe', 'inherit'],
  detached: true,
});
let isRunning = true;
server.once('exit', () => {
  isRunning = false;
});
process.once('exit', () => {
  if (isRunning) process.kill(-server.pid, 'SIGKILL');
});

/** @type {Record<string, string>} */
const printed = {};
for await (const line of createInterface({ input: server.stdout })) {
  const [, name, value] = /^ {2}(\S+(?: \S+)*) {2,}(.+)$/.exec(line) ?? [];
  if (name !== undefined && value !== undefined) printed[name] = value;
  if (name === 'API docs') break;
}
assert.ok(printed['API docs'], 'The server ended before it listened.');
console.log(`Machines: ${printed.Machines}`);

const address = printed.Dashboard;
// The output is no terminal, so the key is in a file.
const key = readFileSync(
  printed['First API key']?.replace('in the file ', '') ?? '',
  'utf8',
).trim();
const authorization = `Bearer ${key}`;

/**
 * @param {string} path
 * @param {object} [body]
 */
async function call(path, body) {
  const response = await fetch(`${address}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await response.text();
  assert.ok(response.ok, `${path}: ${response.status} ${text}`);
  return text;
}

for (let tries = 0; ; tries++) {
  const page = await fetch(`${address}/`, { headers: { accept: 'text/html' } });
  if ((await page.text()).includes('<div id="root">')) break;
  assert.ok(tries < 120, 'The dashboard was not built within two minutes.');
  await sleep(1000);
}

const messages = [{ role: 'user', content: 'Who are you?' }];
const answer = JSON.parse(
  await call('/v1/chat/completions', { model: 'llama3.1-8b-instruct', messages }),
);
console.log(`Answer: ${answer.choices[0].message.content}`);
assert.ok(answer.usage.completion_tokens > 0);

await call('/api/v1/ssh-keys', { name: 'laptop' });
const launched = JSON.parse(
  await call('/api/v1/instance-operations/launch', {
    region_name: 'us-west-1',
    instance_type_name: 'cpu_1x_general',
    ssh_key_names: ['laptop'],
  }),
);
const [id] = launched.data.instance_ids;
for (let tries = 0; ; tries++) {
  const machine = JSON.parse(await call(`/api/v1/instances/${id}`)).data;
  if (machine.status === 'active') break;
  assert.ok(tries < 60, `The machine did not start: ${JSON.stringify(machine)}`);
  await sleep(500);
}
await call('/api/v1/instance-operations/terminate', { instance_ids: [id] });
console.log('A machine was launched and terminated.');

process.kill(-server.pid, 'SIGTERM');
while (isRunning) await sleep(100);
