// The whole way of a newcomer: the real program, a key pair, a launch, ssh, firewall, restart, a killed server,
// terminate; and nothing left behind.

import assert from 'node:assert';
import { execFile } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { createSandboxDriver } from '#cloud/drivers/sandbox/sandbox.ts';
import { needsSandbox } from '#test/support/cloud/sandbox-programs.ts';
import { makeFolder, readFirstSecret, serveMillrace } from '#test/support/process.ts';
import { until } from '#test/support/until.ts';

const run = promisify(execFile);
const skip = needsSandbox('ssh', 'curl');

interface Instance {
  id: string;
  status: string;
  ip?: string;
  ssh_port?: number;
}

test('a machine from the first start', { skip, timeout: 120_000 }, async (context) => {
  const folder = makeFolder();
  const config = join(folder, 'millrace.yaml');
  writeFileSync(config, 'cloud: { rate_limit: false }\n');
  const first = await serveMillrace(['--config', config]);
  // Machines outlive the server, so a test that fails must end them itself.
  context.after(async () => {
    const driver = await createSandboxDriver({ dataDir: first.dataDir });
    for (const id of await driver.list()) await driver.terminate(id);
    await driver.close();
  });
  const key = readFirstSecret(first.stdout(), 'First API key');
  let { url } = first;

  async function api<Data>(
    path: string,
    body?: unknown,
    method = body === undefined ? 'GET' : 'POST',
  ): Promise<Data> {
    const response = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { authorization: `Basic ${Buffer.from(`${key}:`).toString('base64')}` },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const answer = (await response.json()) as { data: Data };
    assert.equal(response.status, 200, JSON.stringify(answer));
    return answer.data;
  }
  const get = (id: string) => api<Instance>(`/instances/${id}`);
  const isActive = async (id: string) => (await get(id)).status === 'active';

  const { private_key } = await api<{ private_key: string }>('/ssh-keys', { name: 'laptop' });
  const pem = join(folder, 'laptop.pem');
  writeFileSync(pem, private_key);
  chmodSync(pem, 0o400);
  const launch = {
    region_name: 'us-west-1',
    instance_type_name: 'cpu_1x_general',
    ssh_key_names: ['laptop'],
    user_data: '#!/bin/sh\necho made > /home/ubuntu/made-by-user-data\n',
  };
  const { instance_ids } = await api<{ instance_ids: string[] }>(
    '/instance-operations/launch',
    launch,
  );
  const id = instance_ids[0] ?? '';
  await until('the machine is active', () => isActive(id));
  const { ip = '', ssh_port = 22 } = await get(id);
  const known = join(folder, 'known_hosts');
  const options = ['-o', `UserKnownHostsFile=${known}`, '-o', 'BatchMode=yes', '-F', 'none'];
  const ssh = async (command: string, ...more: string[]) => {
    const target = ['-p', String(ssh_port), '-i', pem, `ubuntu@${ip}`, command];
    return (await run('ssh', [...options, ...more, ...target])).stdout;
  };

  const accept = ['-o', 'StrictHostKeyChecking=accept-new'];
  assert.equal(await ssh('whoami; echo kept > kept', ...accept), 'ubuntu\n');
  await until('user data ran', async () => (await ssh('ls')).includes('made-by-user-data'));
  const { port } = new URL(url);
  const reached = await ssh(`curl -s -m 2 http://127.0.0.1:${port}/healthz || echo closed`);
  assert.equal(reached, 'closed\n', 'the machine reaches the control plane');

  const opens = () =>
    ssh('true').then(
      () => true,
      () => false,
    );
  const rules = await api('/firewall-rules');
  await api('/firewall-rules', { data: [] }, 'PUT');
  await until('ssh is closed', async () => !(await opens()));
  await api('/firewall-rules', { data: rules }, 'PUT');
  await until('ssh is open again', opens);

  await ssh('nohup sleep 600 >/dev/null 2>&1 & echo $! > pid');
  first.child.kill('SIGKILL');
  await first.ended;
  const second = await serveMillrace(['--config', config, '--data-dir', first.dataDir]);
  url = second.url;
  await until('the machine is found again', () => isActive(id));
  assert.equal(
    await ssh('kill -0 $(cat pid) && cat kept'),
    'kept\n',
    'a killed server ends no machine',
  );

  await api('/instance-operations/restart', { instance_ids: [id] });
  const seesRestart = async () =>
    (await ssh('kill -0 $(cat pid) 2>/dev/null || cat kept').catch(() => '')) === 'kept\n';
  await until('the machine has restarted with its disk and host key', seesRestart);

  await api('/instance-operations/terminate', { instance_ids: [id] });
  await until('it is terminated', async () => (await get(id)).status === 'terminated');
  assert.deepEqual(await api('/instances'), []);
  const machines = join(first.dataDir, 'machines');
  assert.deepEqual(existsSync(machines) ? readdirSync(machines) : [], []);
  second.child.kill('SIGTERM');
  assert.equal((await second.ended).code, 0);
});
