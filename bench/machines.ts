// Machines by the clock, on this host as root: the launch call, launch to ssh for one and for eight at once,
// and ssh and scp beside OpenSSH's own server in the same run. Needs ssh, scp and sshd.
// Usage: node bench/machines.ts

import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const folder = mkdtempSync('/tmp/millrace-bench-');
const port = 18_084;
const sshdPort = 18_085;
const key = 'bench-key-that-is-long-enough-123456';
const identity = join(folder, 'key');
const options = [
  '-F',
  'none',
  '-o',
  'StrictHostKeyChecking=no',
  '-o',
  'UserKnownHostsFile=/dev/null',
];
const quiet = [...options, '-o', 'LogLevel=ERROR', '-i', identity];

interface Target {
  user: string;
  host: string;
  port: number;
}

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

async function timed<Value>(work: () => Promise<Value>): Promise<[ms: number, value: Value]> {
  const start = performance.now();
  const value = await work();
  return [performance.now() - start, value];
}

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

async function startServer(): Promise<ChildProcess> {
  const config = join(folder, 'millrace.yaml');
  writeFileSync(config, JSON.stringify({ cloud: { rate_limit: false, emulate: true } }));
  const args = [
    'serve',
    '--config',
    config,
    '--port',
    String(port),
    '--data-dir',
    join(folder, 'data'),
  ];
  const child = spawn(join(import.meta.dirname, '../millrace'), args, {
    env: { ...process.env, MILLRACE_API_KEY: key },
    stdio: 'ignore',
  });
  for (let tries = 0; tries < 400; tries++) {
    if (await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => null)) return child;
    await new Promise((done) => setTimeout(done, 25));
  }
  throw new Error('the server did not start');
}

/** OpenSSH's own server on this host, with the same key. */
async function startSshd(): Promise<[ChildProcess, Target]> {
  const hostKey = join(folder, 'host-key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', hostKey]);
  mkdirSync('/run/sshd', { recursive: true });
  const config = join(folder, 'sshd_config');
  writeFileSync(
    config,
    `Port ${sshdPort}\nListenAddress 127.0.0.1\nHostKey ${hostKey}\nPidFile none\nUsePAM no\n` +
      `AuthorizedKeysFile ${identity}.pub\nStrictModes no\nPermitRootLogin yes\nSubsystem sftp internal-sftp\n`,
  );
  const child = spawn('/usr/sbin/sshd', ['-D', '-f', config], { stdio: 'ignore' });
  const target = { user: userInfo().username, host: '127.0.0.1', port: sshdPort };
  await reachable(target);
  return [child, target];
}

const ssh = ({ user, host, port: at }: Target, command: string) =>
  run('ssh', [...quiet, '-p', String(at), `${user}@${host}`, command]);
const scp = ({ user, host, port: at }: Target, file: string) =>
  run('scp', [...quiet, '-P', String(at), file, `${user}@${host}:/tmp/bench-copy`]);

async function reachable(target: Target): Promise<void> {
  for (let tries = 0; tries < 300; tries++) {
    if (await ssh(target, 'true').catch(() => null)) return;
    await new Promise((done) => setTimeout(done, 20));
  }
  throw new Error(`${target.host} can't be reached by ssh`);
}

async function launch(): Promise<{ id: string; callMs: number; reachMs: number; target: Target }> {
  const start = performance.now();
  const [callMs, { instance_ids }] = await timed(() =>
    api<{ instance_ids: string[] }>('/instance-operations/launch', {
      region_name: 'us-west-1',
      instance_type_name: 'gpu_1x_a10',
      ssh_key_names: ['bench'],
    }),
  );
  const id = instance_ids[0] ?? '';
  let host: string | undefined;
  let sshPort = 22;
  while (host === undefined) {
    const instance = await api<{ ip?: string; ssh_port?: number }>(`/instances/${id}`);
    host = instance.ip;
    sshPort = instance.ssh_port ?? 22;
  }
  const target = { user: 'ubuntu', host, port: sshPort };
  await reachable(target);
  return { id, callMs, reachMs: performance.now() - start, target };
}

const server = await startServer();
execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', identity]);
const [sshd, openssh] = await startSshd();
try {
  const public_key = execFileSync('cat', [`${identity}.pub`], { encoding: 'utf8' });
  await api('/ssh-keys', { name: 'bench', public_key });
  const one = await launch();
  const [eightMs, eight] = await timed(() => Promise.all(Array.from({ length: 8 }, launch)));
  const rounds = { ours: [] as number[], theirs: [] as number[] };
  for (let round = 0; round < 15; round++) {
    rounds.ours.push((await timed(() => ssh(one.target, 'true')))[0]);
    rounds.theirs.push((await timed(() => ssh(openssh, 'true')))[0]);
  }
  const file = join(folder, 'file');
  execFileSync('dd', ['if=/dev/urandom', `of=${file}`, 'bs=1M', 'count=256', 'status=none']);
  const copies = { ours: [] as number[], theirs: [] as number[] };
  for (let round = 0; round < 3; round++) {
    copies.ours.push((await timed(() => scp(one.target, file)))[0]);
    copies.theirs.push((await timed(() => scp(openssh, file)))[0]);
  }
  const calls = [one, ...eight].map(({ callMs }) => callMs);
  const [ours, theirs] = [median(rounds.ours), median(rounds.theirs)];
  const [up, own] = [median(copies.ours), median(copies.theirs)];
  console.log(`launch call, p50             ${median(calls).toFixed(1)} ms (goal: 20)`);
  console.log(`launch to ssh, one           ${(one.reachMs / 1000).toFixed(2)} s (goal: 2)`);
  console.log(`launch to ssh, eight at once ${(eightMs / 1000).toFixed(2)} s (goal: 6)`);
  console.log(
    `ssh exec ÷ OpenSSH's         ${ours.toFixed(0)} ÷ ${theirs.toFixed(0)} ms = ${(ours / theirs).toFixed(2)} (goal: 3)`,
  );
  console.log(`scp 256 MB, rate ÷ OpenSSH's ${(own / up).toFixed(2)} (goal: 0.5)`);
  const ids = [one, ...eight].map(({ id }) => id);
  await api('/instance-operations/terminate', { instance_ids: ids });
  while ((await api<unknown[]>('/instances')).length > 0) {
    await new Promise((done) => setTimeout(done, 100));
  }
} finally {
  for (const child of [server, sshd]) child.kill('SIGTERM');
  rmSync('/tmp/bench-copy', { force: true });
  rmSync(folder, { recursive: true, force: true });
}
