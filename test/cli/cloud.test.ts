// The CLI's commands for instances and filesystems against a real server: their output and exit codes.

import assert from 'node:assert';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import type { Instance } from '#cloud/schema.ts';
import { publicKey } from '#test/support/cloud/cloud.ts';
import {
  callMillrace,
  makeFolder,
  type RunningProcess,
  readFirstSecret,
  runMillrace,
  serveMillrace,
} from '#test/support/process.ts';

const email = 'me@example.com';
const password = 'correct horse battery';

describe('the CLI and instances', () => {
  let env: Record<string, string>;
  let server: RunningProcess;
  const run = (...words: string[]) => callMillrace(words, { env });
  before(async () => {
    const folder = makeFolder();
    const config = join(folder, 'millrace.yaml');
    writeFileSync(config, 'cloud:\n  driver: scripted\n  rate_limit: false\n');
    const key = 'a-key-for-the-cli-of-this-test-only';
    server = await serveMillrace(['--config', config], { MILLRACE_API_KEY: key });
    env = { HOME: folder, MILLRACE_URL: server.url, MILLRACE_API_KEY: key };
    writeFileSync(join(folder, 'id.pub'), publicKey);
    const added = await run('ssh-keys', 'add', 'laptop', join(folder, 'id.pub'));
    assert.equal(added.code, 0, added.stderr);
    const token = readFirstSecret(server.stdout(), 'Set-up link').split('/').at(-1);
    assert.equal((await post('join', { token, email, password })).status, 200);
  });

  test('the start-up table says how instances are isolated and what they can reach', () => {
    const [, machines] = /Machines +(.*)/.exec(server.stdout()) ?? [];
    assert.match(machines ?? '', /^Scripted: .*\. Scripted: rules are remembered, not enforced\.$/);
  });

  test('a second server on the same data directory is refused, but not one after a kill', async () => {
    const config = join(makeFolder(), 'millrace.yaml');
    writeFileSync(config, 'cloud:\n  driver: scripted\n');
    const first = await serveMillrace(['--config', config]);
    const again = ['serve', '--port', '0', '--config', config, '--data-dir', first.dataDir];
    const second = await runMillrace(again);
    assert.equal(second.code, 1);
    assert(second.stderr.includes(`Another Millrace server is using ${first.dataDir}.`));
    first.child.kill('SIGKILL');
    await first.ended;
    const third = await serveMillrace(['--config', config, '--data-dir', first.dataDir]);
    assert.match(third.url, /^http/);
  });

  test('an instance is launched, waited for, listed, restarted and terminated', async () => {
    const launched = await run('instances', 'launch', 'cpu_1x_general', '--name', 'box', '--wait');
    assert.equal(launched.code, 0, launched.stderr);
    assert.match(launched.stdout, /^[0-9a-f]{32}\n$/);
    assert.match(launched.stderr, /active at 127\.77\./);
    const list = await run('instances', 'list');
    assert.match(list.stdout, /^ID +NAME +STATUS +IP +PRIVATE IP/);
    assert.match(
      list.stdout,
      /box +active +127\.77\.\d+\.\d+ +(10\.77\.\d+\.\d+|-) +cpu_1x_general +us-west-1/,
    );
    assert.equal((await run('instances', 'restart', 'box')).code, 0);
    const terminate = ['instances', 'terminate', launched.stdout.slice(0, 8)];
    for (const input of ['n\n', 'y\n', '']) {
      const refused = await callMillrace(terminate, { env, input });
      assert.deepEqual([refused.code, refused.stdout], [1, '']);
      assert.match(
        refused.stderr,
        /^Terminate box \(\w+\)\? .* needs --yes\. Nothing was changed\.\n$/,
      );
    }
    assert.match((await run('instances', 'list')).stdout, /box +(active|booting)/);
    const ended = await run(...terminate, '--yes');
    assert.equal(ended.stdout, `Terminating ${launched.stdout.trim()}.\n`);
  });

  test('an instance is shown and renamed by its name or a prefix of its id; its log needs a session', async () => {
    const launched = await run('instances', 'launch', 'cpu_1x_general', '--name', 'old', '--wait');
    const id = launched.stdout.trim();
    const renamed = await run('instances', 'rename', 'old', 'new');
    assert.equal(renamed.stdout, `Renamed ${id} to new.\n`, renamed.stderr);
    const shown = await run('instances', 'show', id.slice(0, 8));
    assert.match(shown.stdout, new RegExp(`^Id +${id}\nName +new\nStatus +active\n`));
    assert.match(shown.stdout, /^Price +\$\d+\.\d\d\/hour$/m);
    const json = await run('instances', 'show', 'new', '--json');
    assert.equal((JSON.parse(json.stdout) as Instance).id, id);
    assert.match((await run('instances', 'show', 'old')).stderr, /^There is no instance old\./);

    assert.match((await run('instances', 'logs', 'new')).stderr, /^Not signed in\./);
    const home = { ...env, HOME: makeFolder() };
    await callMillrace(['login', '--email', email], { env: home, input: `${password}\n` });
    const logs = await callMillrace(['instances', 'logs', 'new'], { env: home });
    assert.equal(logs.stdout, `machine ${id} booted\n`, logs.stderr);
  });

  test('--json prints JSON', async () => {
    const launched = await run('instances', 'launch', 'cpu_1x_general', '--wait', '--json');
    const instance = JSON.parse(launched.stdout) as Instance;
    assert.equal(instance.status, 'active');
    const { stdout } = await run('instances', 'list', '--json');
    assert((JSON.parse(stdout) as Instance[]).some(({ id }) => id === instance.id));
  });

  test('instances ssh uses the key in ~/.ssh, or else the one in the current directory', async () => {
    const cwd = makeFolder();
    // Prints its arguments instead of connecting: scripted instances have no ssh server.
    writeFileSync(join(cwd, 'ssh'), '#!/bin/sh\necho "$@"\n', { mode: 0o755 });
    const path = `${cwd}:${process.env.PATH}`;
    const enter = async () => {
      const words = ['instances', 'ssh', 'home', '--', 'ls', '-l'];
      return (await runMillrace(words, { env: { ...env, PATH: path }, cwd })).stdout;
    };
    await run('instances', 'launch', 'cpu_1x_general', '--name', 'home', '--wait');
    assert.match(await enter(), / -p 22 ubuntu@127\.77\.\d+\.\d+ -- ls -l\n$/);
    writeFileSync(join(cwd, 'laptop.pem'), '');
    assert.match(await enter(), / -i laptop\.pem ubuntu@127/);
    const folder = join(env.HOME ?? '', '.ssh');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'laptop.pem'), '');
    assert((await enter()).includes(` -i ${folder}/laptop.pem ubuntu@127`));
  });

  test('a name can neither control the terminal nor forge a table row', async () => {
    const name = 'evil\u001b[31m\nfake  row';
    const added = await fetch(`${server.url}/api/v1/ssh-keys`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${env.MILLRACE_API_KEY}`,
        'content-type': 'application/json',
      },
      body: JSON.stringify({ name, public_key: publicKey }),
    });
    assert.equal(added.status, 200);
    const { stdout } = await run('ssh-keys', 'list');
    assert.match(stdout, /evil\ufffd\[31m\ufffdfake {2}row/);
  });

  test('an impossible request exits 1 and says why', async () => {
    const type = await run('instances', 'launch', 'gpu_1x_a10');
    assert.deepEqual(
      [type.code, type.stderr],
      [1, 'No region has capacity for gpu_1x_a10. See `./millrace instances types`.\n'],
    );
    const named = await run('filesystems', 'create', '2x', 'us-east-1');
    assert.equal(named.stderr, 'Name must be letters, digits and hyphens, the first a letter.\n');
    const ssh = await run('instances', 'ssh', 'nobody');
    assert.equal(ssh.code, 1);
    assert.match(ssh.stderr, /There is no instance nobody\./);
  });

  test('a session sees why an instance is unhealthy, and an API key is told where to look', async () => {
    const launch = () =>
      run('instances', 'launch', 'cpu_1x_general', '--hostname', 'impossible', '--wait');
    const byKey = await launch();
    assert.equal(byKey.code, 1);
    assert.match(
      byKey.stderr,
      /is unhealthy after \d+ s.*\nFor the reason, see the dashboard at http/,
    );
    assert.match(
      (await run('instances', 'list')).stderr,
      /or run `\.\/millrace login` and try again/,
    );

    await signIn();
    const reason = /[0-9a-f]{32}: The scripted host can never run this machine\.\n$/;
    assert.match((await launch()).stderr, reason);
    assert.match((await run('instances', 'list')).stderr, reason);
  });

  async function signIn() {
    const response = await post('login', { email, password });
    const session = /millrace_session=([^;]+)/.exec(response.headers.get('set-cookie') ?? '')?.[1];
    const folder = join(env.HOME ?? '', '.config', 'millrace');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'session.json'), JSON.stringify({ url: server.url, session }));
  }

  const post = (path: string, body: object) =>
    fetch(`${server.url}/dashboard/api/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });

  test('filesystems are created, listed and deleted', async () => {
    const made = await run('filesystems', 'create', 'data', 'us-west-1');
    assert.match(
      made.stdout,
      /^Created filesystem data \([0-9a-f]{32}\)\. Instances mount it at \/lambda\/nfs/,
    );
    assert.match((await run('filesystems', 'list')).stdout, /data +us-west-1/);
    const refused = await callMillrace(['filesystems', 'delete', 'data'], { env, input: 'y\n' });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /^Delete filesystem data and everything in it\? .* needs --yes\./);
    assert.equal((await run('filesystems', 'delete', 'data', '--yes')).code, 0);
    assert.equal((await run('filesystems', 'delete', 'data', '--yes')).code, 1);
  });
});
