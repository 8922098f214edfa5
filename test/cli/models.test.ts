// millrace models, as a person runs it: a child process against a real server and a hub on loopback.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createPlainLines, createRate, describeBytes } from '#cli/progress.ts';
import { toDuration, toSize } from '#lib/text/format.ts';
import { randomGguf } from '#test/support/gguf.ts';
import { startHub, type TestHub } from '#test/support/hub.ts';
import { callMillrace } from '#test/support/process.ts';
import { password, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const model = 'llama3.2-3b-instruct';
const repo = 'bartowski/Llama-3.2-3B-Instruct-GGUF';
const name = `${repo.replace('/', '--')}/Llama-3.2-3B-Instruct-Q4_K_M.gguf`;

describe('millrace models', () => {
  let hub: TestHub;
  let server: TestServer;
  let home: string;

  before(async () => {
    hub = await startHub();
    hub.add(repo, {
      'Llama-3.2-3B-Instruct-Q4_K_M.gguf': randomGguf(200_000),
      'Llama-3.2-3B-Instruct-Q8_0.gguf': randomGguf(400_000),
    });
    server = await startTestServer({
      config: { models: { hub_url: hub.url, disk_reserve_gib: 0 }, inference: { preload: false } },
    });
    home = await mkdtemp(join(tmpdir(), 'millrace-home-'));
    const login = millrace([
      'login',
      '--link',
      server.setupLink ?? '',
      '--email',
      'me@example.com',
    ]);
    login.child.stdin?.end(`${password}\n`);
    assert.equal((await login.ended).code, 0);
  });

  after(() => rm(home, { recursive: true, force: true }));

  function millrace(parameters: string[]) {
    const child = spawn(process.execPath, ['src/main.js', ...parameters], {
      env: { PATH: process.env.PATH, XDG_CONFIG_HOME: home },
    });
    const output = { out: '', err: '' };
    child.stdout.on('data', (chunk) => {
      output.out += chunk;
    });
    child.stderr.on('data', (chunk) => {
      output.err += chunk;
    });
    const ended = new Promise<{ code: number | null; out: string; err: string }>((done) => {
      child.once('close', (code) => done({ code, ...output }));
    });
    return { child, output, ended };
  }

  const run = async (...parameters: string[]) => {
    const env = { XDG_CONFIG_HOME: home, MILLRACE_PROGRAM: 'millrace' };
    const { code, stdout, stderr } = await callMillrace(['models', ...parameters], { env });
    return { code, out: stdout, err: stderr };
  };

  it('pulls, lists, shows and removes', async () => {
    const pulled = await run('pull', model);
    assert.equal(pulled.err.includes('100%'), true, pulled.err);
    assert.deepEqual(pulled.out.trim().split('\n'), [
      `Pulling ${name} (200.0 kB).`,
      `${model} is now served by ${name}. Its checksum is correct.`,
    ]);
    assert.equal(pulled.code, 0);

    const listed = await run('list');
    assert.match(listed.out, /^ID\s+OWNER\s+SERVED BY$/m);
    assert.match(listed.out, new RegExp(`^${model}\\s+meta-llama\\s+${name}$`, 'm'));
    assert.match(listed.out, /^hermes3-8b\s+NousResearch\s+stand-in, not the real model$/m);
    assert.match(listed.out, new RegExp(`^${name}\\s+200.0 kB\\s+whole\\s+${model}$`, 'm'));

    const shown = await run('show', model);
    assert.match(shown.out, /^Owner\s+meta-llama$/m);
    assert.match(shown.out, /^Context window\s+131,072 tokens$/m);
    assert.match(shown.out, /^Price\s+\$0\.015 input, \$0\.025 output per million tokens$/m);
    assert.match(shown.out, new RegExp(`^GGUF weights\\s+${repo}$`, 'm'));
    assert.match(shown.out, new RegExp(`^Served by\\s+${name}$`, 'm'));
    assert.match(shown.out, new RegExp(`^On disk\\s+${name}, 200.0 kB, Q4_K_M$`, 'm'));

    const refused = await run('remove', model);
    assert.equal(refused.code, 1);
    assert.match(
      refused.err,
      /^Delete \S+ \(200\.0 kB\) from the server's disk\? .* needs --yes\./,
    );
    const removed = await run('remove', model, '--yes');
    assert.match(removed.out, /and freed 200\.0 kB\./);
    assert.match(removed.out, new RegExp(`millrace models stand-in ${model}$`, 'm'));
    assert.match((await run('show', model)).out, /^Served by\s+no backend$/m);
    assert.match((await run('stand-in', model)).out, /^The stand-in, .* now answers for /);
    assert.match((await run('show', model)).out, /^Served by\s+stand-in, not the real model$/m);
    assert.doesNotMatch((await run('list')).out, /WEIGHTS ON DISK/);
  });

  it('a chosen quantisation without an id to serve is only on disk', async () => {
    const pulled = await run('pull', `hf.co/${repo}:Q8_0`, '--json');
    const pull = JSON.parse(pulled.out);
    assert.equal(pull.state, 'done');
    assert.equal(pull.model, null);
    const listed = JSON.parse((await run('list', '--json')).out) as {
      id: string;
      weights: unknown;
    }[];
    assert.equal(listed.find(({ id }) => id === model)?.weights, null);
    assert.equal((await run('remove', pull.name, '--yes')).code, 0);
  });

  it('Ctrl-C exits 130 while the server continues the download, and --cancel cancels it', async () => {
    hub.pauseAfter(1_000);
    const pulling = millrace(['models', 'pull', model]);
    await until('it runs', () => hub.sending() === 1);
    await until('it is watched', () => pulling.output.err.includes('%'));
    pulling.child.kill('SIGINT');
    const left = await pulling.ended;
    assert.equal(left.code, 130);
    assert.match(
      left.err,
      /Stopped watching\. The server continues the download\. To cancel: millrace models pull/,
    );
    assert.equal(hub.sending(), 1);
    const cancelled = await run('pull', model, '--cancel');
    assert.match(cancelled.out, /^Cancelled\./);
    await until('the hub is left alone', () => hub.sending() === 0);
    assert.match((await run('pull', model, '--cancel')).err, /No pull of .* is in progress/);
    hub.release();
  });

  it('reports an error in one sentence', async () => {
    for (const [parameters, message] of [
      [['pull', 'llama3.2-3b-instrct'], /Did you mean llama3\.2-3b-instruct\?/],
      [['pull', model, '--quant', 'Q2_K'], /has no Q2_K\. It has: Q4_K_M, Q8_0\./],
      [['pull', '../../etc/passwd'], /names no repository/],
      [
        ['show', 'nothing-like-it'],
        /There is no model nothing-like-it\. See `millrace models list`\./,
      ],
      [['remove', 'nothing'], /No weights on disk are called nothing/],
    ] as const) {
      const { code, err } = await run(...parameters);
      assert.equal(code, 1);
      assert.match(err, message);
    }
  });
});

describe('progress', () => {
  it('shows percent, size, the rate of the last seconds and the time left', () => {
    let now = 0;
    const measureRate = createRate(() => now);
    const describe = (done: number, note = '') =>
      describeBytes(done, 100_000_000, { rate: measureRate(done), note });
    assert.equal(describe(0), '0%  0 B of 100.0 MB');
    now = 2_000;
    assert.equal(describe(50_000_000), '50%  50.0 MB of 100.0 MB  25.0 MB/s  2.0 s left');
    now = 3_000;
    assert.equal(describe(1_000, 'queued'), '0%  1.00 kB of 100.0 MB  queued');
  });

  it('without a terminal is at most one line every five seconds, and the last state', () => {
    const lines: string[] = [];
    let now = 0;
    const plain = createPlainLines({ write: (text) => lines.push(text) }, () => now);
    for (; now < 12_000; now += 500) plain.show(String(now));
    plain.end();
    plain.end();
    assert.deepEqual(lines, ['0\n', '5000\n', '10000\n', '11500\n']);
  });

  it('formats sizes and durations', () => {
    assert.deepEqual([0, 999, 4_920_000_000].map(toSize), ['0 B', '999 B', '4.92 GB']);
    assert.deepEqual([950, 5_000, 59_980, 65_000, 3_700_000].map(toDuration), [
      '950 ms',
      '5.0 s',
      '1 min',
      '1 min 5 s',
      '1 h 1 min',
    ]);
  });
});
