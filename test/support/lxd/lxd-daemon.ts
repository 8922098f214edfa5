// What test daemons have in common: which program it is, its environment, its set-up and its REST API.
// LXD unless MILLRACE_TEST_DAEMON says `incus`.

import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { promisify } from 'node:util';
import { needs, systemPath } from '#test/support/programs.ts';
import { ovnEnvironment } from './ovn.ts';

const execute = promisify(execFile);

const flavours = {
  lxd: { daemon: 'lxd', client: 'lxd', init: ['init', '--preseed'], folderVariable: 'LXD_DIR' },
  incus: {
    daemon: 'incusd',
    client: 'incus',
    init: ['admin', 'init', '--preseed'],
    folderVariable: 'INCUS_DIR',
  },
} as const;

export const flavour = flavours[process.env.MILLRACE_TEST_DAEMON === 'incus' ? 'incus' : 'lxd'];

const needed = [
  'newuidmap',
  'iptables',
  'setfacl',
  'setfattr',
  'unsquashfs',
  'dnsmasq',
  'ip',
  'nft',
  'busybox',
  'ssh',
  'ssh-keygen',
  'sshd',
  'sudo',
  'mkfs.btrfs',
  'mksquashfs',
  'curl',
];

/** Why tests that need the daemon are skipped, or false. */
export const noLxd: string | false =
  process.getuid?.() !== 0
    ? 'the daemon needs root'
    : needs(flavour.daemon, flavour.client, ...needed);

const nowhere = 'http://127.0.0.1:9';
/** Where test daemons are. */
const direct = '127.0.0.1,10.77.0.0/16';

/** The unreachable proxy keeps the daemon from fetching instance types from the internet. */
export function environment(folder: string): NodeJS.ProcessEnv {
  const { LD_LIBRARY_PATH } = process.env;
  return {
    // The daemon runs what its packages bring.
    PATH: systemPath,
    LD_LIBRARY_PATH,
    HTTPS_PROXY: nowhere,
    HTTP_PROXY: nowhere,
    NO_PROXY: direct,
    [flavour.folderVariable]: folder,
    ...ovnEnvironment(folder),
  };
}

/** Settings in every preseed that keep the daemon from downloading images. */
export const quiet = {
  'core.proxy_https': nowhere,
  'core.proxy_ignore_hosts': direct,
  'images.auto_update_interval': '0',
};

/** Uid 1000 may be mapped through, for folders that machines share with the host. */
export const mapUsers = (folder: string) =>
  `printf 'root:100000:65536\\nroot:1000:1\\n' >${folder}/subids
  mount --bind ${folder}/subids /etc/subuid && mount --bind ${folder}/subids /etc/subgid`;

export async function waitReady(folder: string): Promise<void> {
  await execute(flavour.daemon, ['waitready', '--timeout=60'], { env: environment(folder) });
}

/** Stops its machines too; silent when it is not there. */
export async function shutDown(folder: string): Promise<void> {
  const argv = ['shutdown', '--timeout=20'];
  await execute(flavour.daemon, argv, { env: environment(folder) }).catch(() => {});
}

export function exitOf(child: ChildProcess): Promise<unknown> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => child.once('exit', resolve));
}

export async function initialise(folder: string, preseed: object): Promise<void> {
  const child = spawn(flavour.client, flavour.init, { env: environment(folder), stdio: 'pipe' });
  let complaint = '';
  child.stderr.on('data', (chunk) => {
    complaint += chunk;
  });
  child.stdin.end(JSON.stringify(preseed));
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`the daemon was not set up: ${complaint}`);
}

export interface LxdCalls {
  importImage(tarball: string, alias: string): Promise<void>;
  request<Answer>(method: string, path: string, body?: unknown): Promise<Answer>;
  /** Without waiting for the end of what was begun. */
  begin<Answer>(method: string, path: string, body?: unknown): Promise<Answer>;
}

export function callsOver(socket: string): LxdCalls {
  async function ask(method: string, path: string, body?: unknown) {
    const data = body === undefined ? [] : ['-d', JSON.stringify(body)];
    const argv = ['-sS', '--unix-socket', socket, '-X', method, ...data, `http://lxd${path}`];
    const { stdout } = await execute('curl', argv, { maxBuffer: 64 * 1024 * 1024 });
    const answer = JSON.parse(stdout);
    if (answer.type === 'error') throw new Error(`${method} ${path}: ${answer.error}`);
    return answer;
  }

  async function request<Answer>(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await ask(method, path, body);
    if (answer.type !== 'async') return answer.metadata;
    return request('GET', `/1.0/operations/${answer.metadata.id}/wait?timeout=60`);
  }

  return {
    request,
    begin: async (method, path, body) => (await ask(method, path, body)).metadata,
    async importImage(tarball, alias) {
      const argv = ['-sS', '--unix-socket', socket, '-X', 'POST'];
      const type = ['-H', 'Content-Type: application/octet-stream'];
      const url = 'http://lxd/1.0/images';
      const { stdout } = await execute('curl', [...argv, ...type, '-T', tarball, url]);
      const { id } = JSON.parse(stdout).metadata as { id: string };
      const done = await request<{ err: string; metadata: { fingerprint: string } }>(
        'GET',
        `/1.0/operations/${id}/wait?timeout=60`,
      );
      if (done.err) throw new Error(done.err);
      const target = done.metadata.fingerprint;
      await request('POST', '/1.0/images/aliases', { name: alias, target });
    },
  };
}

interface TokenOperation {
  metadata: { secret: string; fingerprint: string; addresses: string[]; expires_at?: string };
}

/** As `lxc config trust add` prints it. */
export async function makeToken(calls: LxdCalls, name = 'millrace'): Promise<string> {
  const ask = { type: 'client', token: true, name };
  const { metadata } = await calls.begin<TokenOperation>('POST', '/1.0/certificates', ask);
  const { secret, fingerprint, addresses, expires_at } = metadata;
  const fields = { client_name: name, fingerprint, addresses, secret, expires_at };
  return Buffer.from(JSON.stringify(fields)).toString('base64');
}
