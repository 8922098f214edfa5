// millrace deploy and deployments, as a person runs them: a child process against a real server.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import { createRunningClock } from '#test/support/clock.ts';
import { callMillrace, makeFolder } from '#test/support/process.ts';
import { password, startTestServer } from '#test/support/server.ts';

const engine = join(import.meta.dirname, '../support/deployed-engine.ts');
const home = makeFolder();
const model = 'hermes3-8b';
/** Of the server. */
const clock = createRunningClock();

const call = (parameters: string[], input = '') =>
  callMillrace(parameters, { env: { XDG_CONFIG_HOME: home }, input });
const run = (parameters: string[], input = '') => clock.through(call(parameters, input));
const program = ['--engine', 'command', '--program', process.execPath, '--arg', engine];

async function show(): Promise<DeploymentView> {
  const { stdout } = await run(['deployments', 'show', 'tested', '--json']);
  return JSON.parse(stdout) as DeploymentView;
}

describe('millrace deploy', () => {
  before(async () => {
    const server = await startTestServer({ clock });
    const link = server.setupLink ?? '';
    const login = ['login', '--link', link, '--email', 'me@example.com'];
    assert.equal((await run(login, `${password}\n`)).code, 0);
  });

  test('waits for the first token, and the deployment is listed, changed and removed', async () => {
    const file = join(home, 'engine.env');
    writeFileSync(file, 'LOAD_MS=200\nVERSION=second\n');
    const made = await run(['deploy', model, ...program, '--name', 'tested', '--env-file', file]);
    assert.equal(made.stdout, `tested answers. It serves ${model}.\n`, made.stderr);
    assert.match(
      (await run(['deployments', 'list'])).stdout,
      /tested +hermes3-8b +command +ready +1 of 1/,
    );
    assert.match((await run(['deployments', 'logs', 'tested'])).stdout, /loading version second/);
    const shown = await run(['deployments', 'show', 'tested']);
    assert.match(shown.stdout, /^Speed +\S.* in the last five minutes/m);
    assert.match(
      shown.stdout,
      /^REPLICA +REVISION +STATE +REQUESTS +AGE +MEMORY\n[0-9a-f]{8} +1 +ready +0 +[\d.]+ \w+ +[\d.]+( MiB)? of [\d.]+ GiB$/m,
    );
    assert.doesNotMatch(shown.stdout, /GPU/);
    assert.match(shown.stdout, /^Ran +\d.* without any replica$/m);

    assert.match(
      (await run(['deployments', 'scale', 'tested', '1', '2'])).stdout,
      /has 1 to 2 replicas/,
    );
    const { min, max, env, can_roll_back } = await show();
    assert.deepEqual([min, max, env, can_roll_back], [1, 2, ['LOAD_MS', 'VERSION'], true]);
    assert.equal((await run(['deployments', 'rollback', 'tested'])).code, 0);
    assert.equal((await show()).min, 0);
    const update = async (...options: string[]) =>
      (await run(['deployments', 'update', 'tested', ...options])).stdout;
    assert.equal(await update('--remove-after', '60'), 'tested is changed.\n');
    assert.equal((await show()).ladder.gone, 60);
    assert.equal(await update('--remove-after', 'never'), 'tested is changed.\n');
    assert.match((await run(['deployments', 'show', 'tested'])).stdout, /^When idle +runs on$/m);
    assert.equal(
      await update('--schedule', 'sat 00:00-00:01 1 Asia/Tokyo'),
      'tested is changed.\n',
    );
    assert.match(
      (await run(['deployments', 'show', 'tested'])).stdout,
      /^Schedule +sat 00:00-00:01 1 Asia\/Tokyo$/m,
    );
    assert.equal(await update('--no-schedule'), 'tested is changed.\n');
    assert.match(
      await update('--arg', engine, '--arg', 'new'),
      /^tested has revision 2\. It takes/,
    );

    assert.equal((await run(['deployments', 'stop', 'tested'])).code, 0);
    await clock.until('it is stopped', async () => {
      const { status, replicas } = await show();
      return status === 'stopped' && replicas.length === 0;
    });
    assert.equal(
      (await run(['deployments', 'logs', 'tested'])).stdout,
      'No engine is running. The log begins with the next start.\n',
    );
    assert.match(
      (await run(['deployments', 'show', 'tested'])).stderr,
      /^Start it again with `\S*millrace deployments start tested`\.$/m,
    );
    assert.match(
      (await run(['run', 'Hello', '--model', model])).stderr,
      /The deployment tested is stopped\. An owner can start it again\./,
    );
    const asked = await run(['deployments', 'remove', 'tested']);
    assert.equal(asked.code, 1, 'without a terminal, it needs --yes');
    assert.equal((await run(['deployments', 'remove', 'tested', '--yes'])).code, 0);
    assert.match((await run(['deployments', 'list'])).stdout, /There are no deployments/);
  });

  test('says whether a model fits', async () => {
    const { stdout } = await run(['deployments', 'fits', 'llama3.1-8b-instruct', '--target', '4']);
    assert.match(stdout, /^8\.03 billion parameters, Llama 3\.1 Community License$/m);
    assert.match(stdout, /^host +\d+(\.\d)? GiB +(yes|no)$/m);
    const short = await run(['deployments', 'fits', 'hermes3-8b', '--tokens', '1024']);
    assert.match(short.stdout, /\(8 × 1,024 tokens\)/, short.stderr);
    assert.match((await run(['deployments', 'fits'])).stdout, /Qwen\/Qwen3-8B +8\.19 billion/);
    assert.match((await run(['deployments', 'fits', 'unheard-of'])).stdout, /is not known/);
  });

  test('says what is wrong with its options', async () => {
    const refusals: [args: string[], message: RegExp][] = [
      [[], /^Name the engine with --engine: builtin, llama-server, vllm, sglang, command\.$/m],
      [['--engine', 'tgi'], /argument 'tgi' is invalid\. Allowed choices are builtin, /],
      [['--engine', 'vllm', '--min', '2'], /^--min 2 needs --max 2 or more: /m],
      [
        ['--engine', 'vllm', '--min', '3', '--max', '2'],
        /^--min must be at most --max, which is 2, got 3\.$/m,
      ],
    ];
    for (const [args, message] of refusals) {
      const { code, stderr } = await run(['deploy', model, ...args]);
      assert.notEqual(code, 0);
      assert.match(stderr, message);
    }
    const scaled = await run(['deployments', 'scale', 'tested', '3', '2']);
    assert.match(scaled.stderr, /^min must be at most max, which is 2, got 3\.$/m);
  });

  test('says why an engine did not start', async () => {
    const file = join(home, 'broken.env');
    writeFileSync(file, 'FAIL=No such model\n');
    const { code, stderr } = await run([
      'deploy',
      model,
      ...program,
      '--name',
      'broken',
      '--env-file',
      file,
    ]);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /broken failed\. The engine ended with exit code 1\. See `\S*millrace deployments logs broken`/,
    );
    const shown = await run(['deployments', 'show', 'broken']);
    assert.match(shown.stderr, /^See `\S*millrace deployments logs broken` for what the engine/m);
    const wrong = ['--name', 'wrong', '--engine', 'builtin', '--arg', '--nonsense'];
    assert.match(
      (await run(['deploy', model, ...wrong])).stderr,
      /wrong failed\. The engine does not take one of its arguments\. Its log says which\./,
    );
    const other = ['hermes3-70b', ...program, '--name', 'brief', '--env-file', file];
    const brief = await run(['deploy', ...other, '--hold-seconds', '1']);
    assert.match(brief.stderr, /brief failed\./, 'its request was refused before');
    const absent = ['--name', 'absent', '--engine', 'command', '--program', '/opt/absent'];
    const lost = await call(['deploy', model, ...absent]);
    assert.match(lost.stderr, /program was not found\. \/opt\/absent is not an executable file/);
    const half = await call(['deploy', model, ...absent, '--min', '1.5']);
    assert.match(half.stderr, /^error: .*'--min <number>' .*1\.5.* Give a whole number\.$/m);
    assert.doesNotMatch(half.stderr, /--max/);
    const missing = await run(['deploy', model, ...program, '--env-file', 'missing.env']);
    assert.match(missing.stderr, /^Can't read missing\.env: /);
    assert.match(
      (await run(['deployments', 'update', 'broken'])).stderr,
      /Name at least one change/,
    );
  });
});
