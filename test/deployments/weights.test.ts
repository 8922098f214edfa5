// Weights of deployments: fetched from a hub by the server, before the engines start.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, before, describe, test } from 'node:test';
import type { CostView, FitsView } from '#deployments/ground/schema.ts';
import { builtinModel } from '#inference/engines/local/builtin.ts';
import type { WeightsOverview } from '#inference/weights/schema.ts';
import { createRunningClock } from '#test/support/clock.ts';
import { openTestDeployments, type TestDeployments } from '#test/support/deployments.ts';
import { startHub, type TestHub } from '#test/support/hub.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const repo = 'acme/small';
const name = 'acme--small/safetensors';
const config = {
  num_hidden_layers: 2,
  num_attention_heads: 4,
  hidden_size: 64,
  max_position_embeddings: 512,
};
const files = {
  'config.json': Buffer.from(JSON.stringify(config)),
  'model.safetensors': randomBytes(100_000),
};

/** Goes by itself, and can be turned. */
const clock = createRunningClock();

describe('weights of deployments', () => {
  let hub: TestHub;
  let server: TestServer;
  let owner: SessionFetch;
  let member: SessionFetch;
  let deployments: TestDeployments;
  before(async () => {
    hub = await startHub();
    hub.add(repo, files);
    const models = { hub_url: hub.url, disk_reserve_gib: 0 };
    server = await startTestServer({ clock, config: { models } });
    owner = await server.join();
    const invited = await owner('/dashboard/api/invitations', { json: { role: 'member' } });
    const { link } = (await invited.json()) as { link: string };
    member = await server.joinBy(link, 'member@example.com');
    deployments = openTestDeployments(server, owner, clock);
  });
  afterEach(() => deployments.removeAll());

  const readOverview = async () =>
    (await (await owner('/dashboard/api/weights')).json()) as WeightsOverview;
  const remove = async () => {
    const response = await owner(`/dashboard/api/weights/${name}`, { method: 'DELETE' });
    return { status: response.status, text: await response.text() };
  };
  const contentsSent = () => hub.seen.filter(({ host }) => host === 'cdn').length;

  test('two replicas wait for one fetch, with progress, and the engines read what came', async () => {
    hub.pauseAfter(50_000);
    await deployments.create('shared', { source: repo, min: 2, max: 2, start_seconds: 2 });
    const asked = deployments.chat({ stream: true }, { 'x-millrace-progress': '1' });
    await until('both show progress', async () => {
      const { replicas } = await deployments.show('shared');
      return (
        replicas.length === 2 &&
        replicas.every(({ progress }) => /^fetching weights [45]\d %$/.test(progress ?? ''))
      );
    });
    const [pull] = (await readOverview()).pulls;
    assert.deepEqual([pull?.name, pull?.state, pull?.model], [name, 'running', null]);
    hub.release();
    const text = await (await asked).text();
    assert.match(text, /: progress: fetching weights \d+ %/);
    assert.match(text, /num_hidden_layers/);
    await clock.until('both are ready', async () => {
      const { replicas } = await deployments.show('shared');
      return replicas.every(({ state }) => state === 'ready') && replicas.length === 2;
    });
    assert.equal(contentsSent(), 2);
    const [stored] = (await readOverview()).data;
    assert.deepEqual(
      [stored?.name, stored?.state, stored?.deployments],
      [name, 'whole', ['shared']],
    );
    const refused = await remove();
    assert.equal(refused.status, 409, refused.text);
    assert.match(refused.text, /is used by the deployment shared\. Remove that first\./);
  });

  test('what was fetched is used again, says how much memory it needs, and can be deleted', async () => {
    await deployments.create('again', { source: repo, min: 1 });
    await clock.until(
      'it is ready',
      async () => (await deployments.show('again')).status === 'ready',
    );
    assert.equal(contentsSent(), 2);
    const { data } = await deployments.call<FitsView>('GET', `/-/fits?model=x&source=${repo}`);
    assert.equal(data.need?.tokens, 512);
    await deployments.removeAll();
    assert.equal((await remove()).status, 200);
    assert.deepEqual((await readOverview()).data, []);
  });

  test('a repository that is missing or gated ends as a sentence, and HF_TOKEN opens it', async () => {
    hub.add('acme/gated', files, { token: 'hf_secret' });
    await deployments.create('gated', { source: 'acme/gated' });
    const refused = await (await clock.through(deployments.chat())).text();
    assert.match(
      refused,
      /The deployment gated failed\. The engine could not be started\. Its page/,
    );
    assert.doesNotMatch(refused, /acme|hub/);
    assert.match(
      (await deployments.show('gated')).reason ?? '',
      /could not be started\. acme\/gated does not exist on .*, or is private or gated/,
    );
    await deployments.call('POST', '/gated', { env: { HF_TOKEN: 'hf_secret' } });
    assert.match(await (await clock.through(deployments.chat())).text(), /num_hidden_layers/);
    await deployments.call('POST', '/gated', { source: 'acme/gated@v9' });
    assert.match((await deployments.show('gated')).source ?? '', /v9/);
  });

  test('a fetch that fails counts once for all replicas that wait for it', async () => {
    await deployments.create('late', { source: 'acme/late', min: 3, max: 3 });
    await clock.until('it fails', async () => (await deployments.show('late')).reason !== null);
    hub.add('acme/late', files);
    await clock.until(
      'it is ready',
      async () => (await deployments.show('late')).status === 'ready',
    );
  });

  test('a model that does not fit is refused once its files say so', async () => {
    const large = { ...config, num_hidden_layers: 100_000, hidden_size: 1_048_576 };
    hub.add('acme/large', { ...files, 'config.json': Buffer.from(JSON.stringify(large)) });
    await deployments.create('large', { source: 'acme/large' });
    assert.equal((await clock.through(deployments.chat())).status, 503);
    const { reason } = await deployments.show('large');
    assert.match(reason ?? '', /does not fit: it needs .* GiB/);
  });

  test('an hour of fetching is not counted as time to load', async () => {
    hub.add('acme/long', files);
    hub.pauseAfter(50_000);
    await deployments.create('long', {
      ...{ source: 'acme/long', hold_requests: 1, hold_seconds: 7_200 },
      ...{ ladder: { gone: 60 }, env: { LOAD_MS: '300' } },
    });
    const answer = deployments.chat();
    await until('it fetches', async () =>
      /fetching weights \d/.test((await deployments.show('long')).replicas[0]?.progress ?? ''),
    );
    clock.turn(3_600_000);
    hub.release();
    assert.equal((await answer).status, 200);
    const { data } = await deployments.call<CostView>('GET', '/long/cost');
    assert(data.engine_seconds < 60, `${data.engine_seconds} s`);
    // It may go as soon as it is idle: it need not serve for as long as it fetched.
    await clock.until(
      'it is gone',
      async () => (await deployments.show('long')).replicas.length === 0,
    );
    const held = deployments.chat();
    const refused = await until('a request is refused', async () => {
      const response = await deployments.chat();
      return response.status === 503 ? response : undefined;
    });
    assert(Number(refused.headers.get('retry-after')) < 60);
    assert.equal((await held).status, 200);
  });

  test('a request that is refused during a fetch is told to wait for the rest of it', async () => {
    hub.add('acme/stalled', files);
    hub.pauseAfter(50_000);
    await deployments.create('stalled', { source: 'acme/stalled', hold_requests: 1 });
    const held = deployments.chat();
    // The load alone is estimated at 30 seconds. Nothing comes, so that the rest of the fetch takes ever longer.
    await until('a request is told to wait for both', async () => {
      const response = await deployments.chat();
      return response.status === 503 && Number(response.headers.get('retry-after')) > 33;
    });
    hub.release();
    assert.equal((await held).status, 200);
  });

  test('a deployment that is stopped while it waits for weights ends at once', async () => {
    hub.add('acme/slow', files);
    hub.pauseAfter(10);
    await deployments.create('slow', { source: 'acme/slow', min: 1 });
    await until('it fetches', async () =>
      /fetching/.test((await deployments.show('slow')).replicas[0]?.progress ?? ''),
    );
    await deployments.call('POST', '/slow/stop');
    await clock.until('no replica is left', async () => {
      const { replicas } = await deployments.show('slow');
      return replicas.length === 0;
    });
    await clock.until(
      'its pull has ended',
      async () => (await readOverview()).pulls[0]?.state === 'cancelled',
    );
    hub.release();
  });

  test('a member can neither cancel the pull of a deployment nor choose what it loads', async () => {
    hub.add('acme/quants', {
      'x-Q4_K_M.gguf': randomBytes(100_000),
      'x-Q8_0.gguf': randomBytes(100_000),
    });
    hub.pauseAfter(10);
    await deployments.create('quants', {
      source: 'acme/quants:Q8_0',
      engine: 'llama-server',
      min: 1,
    });
    await until('it fetches', async () => hub.sending() === 1);
    const { id } = (await readOverview()).pulls[0] ?? {};
    const cancelled = await member(`/dashboard/api/weights/pulls/${id}`, { method: 'DELETE' });
    assert.equal(cancelled.status, 403);
    assert.match(await cancelled.text(), /is used by the deployment quants\. Only an owner may/);
    const pull = (file: string) =>
      member('/dashboard/api/weights/pulls', { json: { repo: 'acme/quants', file } });
    assert.equal((await pull('x-Q8_0.gguf')).status, 403);
    assert.equal((await pull('x-Q4_K_M.gguf')).status, 202);
    const isFailed = (await deployments.show('quants')).status === 'failed';
    assert(!isFailed);
    hub.release();
  });

  test('a GGUF file of the hub serves by the built-in engine', async () => {
    hub.add('acme/gguf', { 'small-Q8_0.gguf': readFileSync(builtinModel.modelPath) });
    const builtin = { engine: 'builtin', program: null, args: null };
    await deployments.create('gguf', { ...builtin, source: 'acme/gguf:Q8_0' });
    const response = await clock.through(deployments.chat({ max_tokens: 2 }));
    assert.equal(response.status, 200, await response.text());
    assert.match(response.headers.get('x-served-by') ?? '', /^gguf-/);
    const stored = (await readOverview()).data.find(({ repo }) => repo === 'acme/gguf');
    assert.deepEqual([stored?.quant, stored?.deployments], ['Q8_0', ['gguf']]);
  });

  test('a path is given to the engine as it is', async () => {
    const folder = join(server.dataDir, 'no-such-folder');
    await deployments.create('path', { source: folder });
    assert.match(
      await (await clock.through(deployments.chat())).text(),
      /The engine ended with exit code 1/,
    );
  });
});
