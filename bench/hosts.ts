// Machines on a real LXD by the clock, through the API of a whole server: launch to ssh for one and for eight
// at once, and what an idle server asks of its host. As root; needs what the tests of LXD need.
// Usage: node bench/hosts.ts [image tarball]    the small image unless another is given

import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { buildHostImage } from '../src/cloud/drivers/incus/images/image-recipe.ts';
import { startLxd } from '../test/support/lxd/lxd.ts';
import { startUnixProxy } from '../test/support/unix-proxy.ts';

const run = promisify(execFile);
const [given] = process.argv.slice(2);
const goals = given === undefined ? { one: 4, eight: 10 } : { one: 10, eight: null };
const folder = mkdtempSync('/tmp/millrace-bench-');
const port = 18_086;
const key = 'bench-key-that-is-long-enough-123456';
const identity = join(folder, 'key');
const region = 'us-west-1';
const idleSeconds = 60;

async function api<Data>(path: string, body?: object): Promise<Data> {
  const response = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const answer = (await response.json()) as { data: Data };
  if (!response.ok) throw new Error(JSON.stringify(answer));
  return answer.data;
}

async function startServer(url: string, network: string): Promise<ChildProcess> {
  const config = join(folder, 'millrace.yaml');
  const hosts = [{ name: 'lxd', region, url, network, default_image: 'bench' }];
  const cloud = { driver: 'none', rate_limit: false, emulate: true, hosts };
  writeFileSync(config, JSON.stringify({ cloud }));
  const place = ['--port', `${port}`, '--data-dir', join(folder, 'data')];
  const program = join(import.meta.dirname, '../millrace');
  const child = spawn(program, ['serve', '--config', config, ...place], {
    env: { ...process.env, MILLRACE_API_KEY: key },
    stdio: 'ignore',
  });
  for (let tries = 0; tries < 400; tries++) {
    const types = await api<Record<string, { regions_with_capacity_available: unknown[] }>>(
      '/instance-types',
    ).catch(() => null);
    if (types?.gpu_1x_a10?.regions_with_capacity_available.length) return child;
    await sleep(50);
  }
  throw new Error('the server did not start');
}

const options = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR'];
const settings = [...options, 'ConnectTimeout=2'].flatMap((one) => ['-o', one]);
const ssh = (host: string) =>
  run('ssh', ['-F', 'none', ...settings, '-i', identity, `ubuntu@${host}`, 'true']);

async function launch(): Promise<string> {
  const { instance_ids } = await api<{ instance_ids: string[] }>('/instance-operations/launch', {
    region_name: region,
    instance_type_name: 'gpu_1x_a10',
    ssh_key_names: ['bench'],
  });
  const id = instance_ids[0] ?? '';
  for (;;) {
    const { status, ip } = await api<{ status: string; ip?: string }>(`/instances/${id}`);
    if (status === 'unhealthy' || status === 'terminated') throw new Error(`it is ${status}`);
    if (status === 'active' && ip !== undefined && (await ssh(ip).catch(() => null))) return id;
    await sleep(50);
  }
}

async function terminate(ids: string[]): Promise<void> {
  await api('/instance-operations/terminate', { instance_ids: ids });
  while ((await api<unknown[]>('/instances')).length > 0) await sleep(100);
}

async function time(count: number): Promise<number> {
  const begun = performance.now();
  const ids = await Promise.all(Array.from({ length: count }, launch));
  const seconds = (performance.now() - begun) / 1000;
  await terminate(ids);
  return seconds;
}

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[1] ?? Number.NaN;
const line = (what: string, value: string, goal: number | null) =>
  console.log(`${what.padEnd(44)}${value}${goal === null ? '' : ` (goal: ${goal})`}`);

const lxd = await startLxd();
let server: ChildProcess | undefined;
try {
  await lxd.importImage(given ?? (await buildHostImage(join(lxd.folder, 'image'))), 'bench');
  const proxy = await startUnixProxy(lxd.socket);
  server = await startServer(`unix:${proxy.path}`, lxd.network);
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', identity]);
  await api('/ssh-keys', { name: 'bench', public_key: readFileSync(`${identity}.pub`, 'utf8') });
  await time(1);
  const ones = [await time(1), await time(1), await time(1)];
  line('launch to ssh, one (median of 3)', `${median(ones).toFixed(2)} s`, goals.one);
  line('launch to ssh, eight at once', `${(await time(8)).toFixed(2)} s`, goals.eight);
  const idle = await launch();
  await sleep(5_000);
  const before = proxy.requests.length;
  await sleep(idleSeconds * 1000);
  const asked = ((proxy.requests.length - before) / idleSeconds) * 10;
  line('idle, requests to the host in ten seconds', asked.toFixed(2), 1);
  await terminate([idle]);
  await proxy.close();
} finally {
  server?.kill('SIGTERM');
  await lxd.stop();
  rmSync(folder, { recursive: true, force: true });
}
