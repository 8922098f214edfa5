// The CLI's words for machines, against a real server: what they print and how they end.

import assert from 'node:assert';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import type { Instance } from '#cloud/schema.ts';
import { publicKey } from '#test/support/cloud/cloud.ts';
import {
  makeFolder,
  type RunningProcess,
  runMillrace,
  serveMillrace,
} from '#test/support/process.ts';

describe('the CLI and machines', () => {
  let env: Record<string, string>;
  let server: RunningProcess;
  const run = (...words: string[]) => runMillrace(words, { env });
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
  });

  test('the start-up table says how machines are kept apart and what they reach', () => {
    const [, machines] = /Machines +(.*)/.exec(server.stdout()) ?? [];
    assert.match(machines ?? '', /^Scripted: .*\. Scripted: rules are remembered, not enforced\.$/);
  });

  test('a second server on the same data directory is refused, not one after a kill', async () => {
    const config = join(makeFolder(), 'millrace.yaml');
    writeFileSync(config, 'cloud:\n  driver: scripted\n');
    const first = await serveMillrace(['--config', config]);
    const again = ['serve', '--port', '0', '--config', config, '--data-dir', first.dataDir];
    const second = await runMillrace(again);
    assert.equal(second.code, 1);
    assert(second.stderr.includes(`Another Millrace already runs on ${first.dataDir}.`));
    first.child.kill('SIGKILL');
    await first.ended;
    const third = await serveMillrace(['--config', config, '--data-dir', first.dataDir]);
    assert.match(third.url, /^http/);
  });

  test('a machine is launched, waited for, listed, restarted and terminated', async () => {
    const launched = await run('instances', 'launch', 'cpu_1x_general', '--name', 'box', '--wait');
    assert.equal(launched.code, 0, launched.stderr);
    assert.match(launched.stdout, /^[0-9a-f]{32}\n$/);
    assert.match(launched.stderr, /active at 127\.77\./);
    const list = await run('instances', 'list');
    assert.match(list.stdout, /^ID +NAME +STATUS/);
    assert.match(list.stdout, /box +active +127\.77\.\d+\.\d+ +cpu_1x_general +us-west-1/);
    assert.equal((await run('instances', 'restart', 'box')).code, 0);
    const ended = await run('instances', 'terminate', launched.stdout.slice(0, 8), '--yes');
    assert.equal(ended.stdout, `Terminating ${launched.stdout.trim()}.\n`);
  });

  test('--json prints what a program can read', async () => {
    const launched = await run('instances', 'launch', 'cpu_1x_general', '--wait', '--json');
    const instance = JSON.parse(launched.stdout) as Instance;
    assert.equal(instance.status, 'active');
    const { stdout } = await run('instances', 'list', '--json');
    assert((JSON.parse(stdout) as Instance[]).some(({ id }) => id === instance.id));
  });

  test('a machine is entered with the key that was saved in this folder', async () => {
    const cwd = makeFolder();
    // Says what it was asked instead of going there: these machines are none.
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
  });

  test('names can not command the terminal, nor make a row of their own', async () => {
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

  test('what cannot be done is said, with exit code 1', async () => {
    const type = await run('instances', 'launch', 'gpu_1x_a10');
    assert.deepEqual(
      [type.code, type.stderr],
      [1, 'No region has capacity for gpu_1x_a10. See `millrace instances types`.\n'],
    );
    const ssh = await run('instances', 'ssh', 'nobody');
    assert.equal(ssh.code, 1);
    assert.match(ssh.stderr, /There is no instance nobody\./);
  });

  test('why an instance is unhealthy is said to people, and keys are told where to look', async () => {
    const launch = () =>
      run('instances', 'launch', 'cpu_1x_general', '--hostname', 'impossible', '--wait');
    const byKey = await launch();
    assert.equal(byKey.code, 1);
    assert.match(
      byKey.stderr,
      /is unhealthy after \d+ s.*\nThe reason is in the dashboard at http/,
    );
    assert.match((await run('instances', 'list')).stderr, /here after `millrace login`/);

    await signIn();
    const reason = /[0-9a-f]{32}: The scripted host can never run this machine\.\n$/;
    assert.match((await launch()).stderr, reason);
    assert.match((await run('instances', 'list')).stderr, reason);
  });

  async function signIn() {
    const token = /#\/join\/(\S+)/.exec(server.stdout())?.[1];
    const response = await fetch(`${server.url}/dashboard/api/join`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ token, email: 'me@example.com', password: 'correct horse battery' }),
    });
    const session = /millrace_session=([^;]+)/.exec(response.headers.get('set-cookie') ?? '')?.[1];
    const folder = join(env.HOME ?? '', '.config', 'millrace');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'session.json'), JSON.stringify({ url: server.url, session }));
  }

  test('filesystems are created, listed and deleted', async () => {
    const made = await run('filesystems', 'create', 'data', 'us-west-1');
    assert.match(made.stdout, /^Created data \([0-9a-f]{32}\)\. Machines see it at \/lambda\/nfs/);
    assert.match((await run('filesystems', 'list')).stdout, /data +us-west-1/);
    assert.equal((await run('filesystems', 'delete', 'data', '--yes')).code, 0);
    assert.equal((await run('filesystems', 'delete', 'data', '--yes')).code, 1);
  });
});
