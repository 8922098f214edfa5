// millrace backends, as a person runs it: a child process against a real server and a scripted upstream.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import {
  type ScriptedUpstream,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import { callMillrace, makeFolder, runMillrace } from '#test/support/process.ts';
import { password, startTestServer, type TestServer } from '#test/support/server.ts';

const model = 'hermes3-8b';
const apiKey = 'sk-of-the-upstream';
describe('millrace backends', () => {
  const home = makeFolder();
  let upstream: ScriptedUpstream;
  let server: TestServer;

  before(async () => {
    upstream = await startScriptedUpstream({ apiKey });
    server = await startTestServer();
    const link = server.setupLink ?? '';
    const { code, stderr } = await run(['login', '--link', link, '--email', 'me@example.com'], {
      input: `${password}\n`,
    });
    assert.equal(code, 0, stderr);
  });
  after(() => upstream.close());

  const run = (parameters: string[], { input = '' } = {}) =>
    callMillrace(parameters, { env: { XDG_CONFIG_HOME: home }, input });
  const backends = (...parameters: string[]) => run(['backends', ...parameters]);

  it('checks, adds, lists, drains, resumes and removes', async () => {
    const file = join(home, 'key.txt');
    writeFileSync(file, `${apiKey}\n`);
    const about = [model, upstream.url, '--model', 'scripted', '--server', 'vllm'];
    const wrong = await backends('check', ...about);
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /refused the configured credentials/);
    const right = await backends('check', ...about, '--api-key-file', file);
    assert.match(right.stdout, /^It answers, and has scripted\. \(\d+ ms\)\n$/);

    const piped = await runMillrace(
      ['backends', 'add', ...about, '--name', 'box', '--api-key-file', '-', '--weight', '2'],
      { env: { XDG_CONFIG_HOME: home }, input: apiKey },
    );
    assert.equal(
      piped.stdout,
      `Added ${model}/box. It now receives requests for ${model}.\n`,
      piped.stderr,
    );
    const answer = await server.fetch('/v1/chat/completions', {
      json: { model, messages: [{ role: 'user', content: 'Hi' }] },
    });
    assert.equal(answer.headers.get('x-served-by'), 'box');

    const unknown = await backends('list', 'nope');
    assert.deepEqual([unknown.code, unknown.stdout], [1, '']);
    assert.match(unknown.stderr, /^No model nope has backends\./);
    const listed = await backends('list', model);
    assert.match(listed.stdout, /hermes3-8b +box +live +http:\S+ +healthy +0 /);
    assert.equal(listed.stdout.trim().split('\n').length, 2);
    const [row] = JSON.parse((await backends('list', model, '--json')).stdout);
    assert.equal(row.weight, 2);
    const models = await run(['models', 'list']);
    assert.match(models.stdout, /hermes3-8b +NousResearch +box\n/);
    assert.match(models.stdout, /lfm-40b +LiquidAI +stand-in, not the real model\n/);
    const unlisted = 'hermes-3-llama-3.1-405b-fp8-128k';
    assert.match(models.stdout, new RegExp(`\n${unlisted} +NousResearch +stand-in`));
    assert.ok(
      models.stdout.endsWith(`Not listed by GET /v1/models, but served by id: ${unlisted}.\n`),
    );

    assert.equal(
      (await backends('drain', `${model}/box`)).stdout,
      `${model}/box gets no new requests. Requests still running: 0.\n`,
    );
    assert.match((await backends('list', model)).stdout, /draining, healthy/);
    assert.match((await run(['models', 'list'])).stdout, /box \(draining, healthy\)/);
    assert.equal((await backends('resume', `${model}/box`)).code, 0);
    const refused = await run(['backends', 'remove', `${model}/box`], { input: 'y\n' });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /^Remove backend hermes3-8b\/box\? .* needs --yes\./);
    assert.equal((await backends('remove', `${model}/box`, '--yes')).code, 0);
    const gone = await backends('remove', `${model}/box`, '--yes');
    assert.equal(gone.code, 1);
    assert.match(
      gone.stderr,
      /There is no backend hermes3-8b\/box\.|"hermes3-8b\/box" does not exist\./,
    );
  });

  it('adds a backend that does not answer only with --force', async () => {
    const dead = [model, 'http://127.0.0.1:9/v1', '--name', 'dead'];
    const refused = await backends('add', ...dead);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /Nothing was added\. To add it anyway, use --force\./);
    assert.doesNotMatch((await backends('list', model)).stdout, /dead/);
    const forced = await backends('add', ...dead, '--force');
    assert.equal(forced.code, 0, forced.stderr);
    assert.equal((await backends('remove', `${model}/dead`, '--yes')).code, 0);
  });

  it('asks for the name of the model if the backend has it under another one', async () => {
    const named = await startScriptedUpstream({ model: 'org/other' });
    const refused = await backends('add', model, named.url, '--name', 'named');
    assert.match(
      refused.stderr,
      /It has: org\/other\. Name one of them with --model\. Nothing was added\./,
    );
    await named.close();
  });

  it('shows a backend that fails every request as failing, with the last error', async () => {
    const broken = await startScriptedUpstream({ behaviour: 'html-error' });
    const added = await backends('add', model, broken.url, '--name', 'broken', '--force');
    assert.equal(added.code, 0, added.stderr);
    const response = await server.fetch('/v1/chat/completions', {
      json: { model, messages: [{ role: 'user', content: 'Hi' }] },
    });
    assert.ok(response.status >= 500);
    const { stdout } = await backends('list', model);
    assert.match(stdout, /broken .* failing 100% /);
    assert.match(stdout, /hermes3-8b\/broken: \S/);
    assert.equal((await backends('remove', `${model}/broken`, '--yes')).code, 0);
    await broken.close();
  });

  it('reports wrong usage', async () => {
    const unknown = await backends('add', 'no-such-model', upstream.url);
    assert.equal(unknown.code, 1);
    assert.match(unknown.stderr, /There is no model "no-such-model" here.*models\.catalog/s);
    assert.match((await backends('add', model, 'nowhere')).stderr, /nowhere is not a URL/);
    assert.equal((await backends('add', model, upstream.url, '--weight', 'x')).code, 2);
    const header = await backends('add', model, upstream.url, '--header', 'x');
    assert.match(header.stderr, /--header must be "name: value", got "x"/);
    const help = await backends('add', '--help');
    assert.match(help.stdout, /--api-key-file <file>/);
    assert.match(help.stdout, /Examples:/);
  });
});
