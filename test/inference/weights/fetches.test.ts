// Weights for engines: whole models of the hub, fetched once for all that need them.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { beforeEach, describe, it } from 'node:test';
import type { SessionPrincipal } from '#accounts/principal.ts';
import { parseSource } from '#inference/weights/choose.ts';
import { type Format, findNamed } from '#inference/weights/selection.ts';
import { randomGguf } from '#test/support/gguf.ts';
import { startHub, type TestHub } from '#test/support/hub.ts';
import { until } from '#test/support/until.ts';
import { openTestWeights, type TestWeights } from '#test/support/weights.ts';

const repo = 'meta-llama/Llama-3.1-8B-Instruct';
const text = (value: string) => Buffer.from(value);
const shards = [randomBytes(50_000), randomBytes(30_000)] as const;
const model = {
  'config.json': text('{"num_hidden_layers":2}'),
  'tokenizer.json': text('{}'),
  'tokenizer.model': text('x'),
  'model.safetensors.index.json': text('{"weight_map":{}}'),
  'model-00001-of-00002.safetensors': shards[0],
  'model-00002-of-00002.safetensors': shards[1],
};
const others = {
  'README.md': text('# Llama'),
  '.gitattributes': text('x'),
  'pytorch_model.bin': text('pickled'),
  'consolidated.safetensors': text('the same again'),
  'original/params.json': text('{}'),
  'empty.json': text(''),
};

describe('fetching weights for engines', () => {
  let hub: TestHub;
  let weights: TestWeights;
  beforeEach(async () => {
    hub = await startHub();
    hub.add(repo, { ...model, ...others });
    weights = await openTestWeights(hub);
  });
  const provide = (
    source: string,
    {
      format = 'safetensors' as Format,
      token = null as string | null,
      signal = new AbortController().signal,
      of = weights,
    } = {},
    reports: string[] = [],
  ) =>
    of.fetches.provide(
      { accountId: of.person.accountId, source: parseSource(source), format, token },
      { report: (progress) => reports.push(progress), signal },
    );
  const lastPull = async () => {
    const [pull] = await weights.pulls.list(weights.person.accountId);
    assert(pull !== undefined);
    return pull;
  };
  const running = (name: string) =>
    until(`${name} is pulled`, async () =>
      (await weights.pulls.list(weights.person.accountId)).find(
        (pull) => pull.state === 'running' && `${pull.repo} ${pull.name}`.includes(name),
      ),
    );
  const filesSent = () => hub.seen.filter(({ host }) => host === 'cdn').length;

  it('the files that an engine needs are fetched once for all that wait, and then found without the hub', async () => {
    const all = await Promise.all([provide(repo), provide(repo), provide(repo)]);
    const { path, name, isWhole } = all[0];
    assert.equal(name, 'meta-llama--Llama-3.1-8B-Instruct/safetensors');
    assert.deepEqual((await readdir(path)).sort(), Object.keys(model).sort());
    assert.deepEqual(await readFile(join(path, 'model-00001-of-00002.safetensors')), shards[0]);
    assert(isWhole && all.every((one) => one.path === path));
    // Engines on machines read them as another user. Nobody else on this computer reaches or changes them.
    const toMode = async (at: string) => ((await stat(at)).mode & 0o777).toString(8);
    const modes = ['models', path, join(path, 'config.json')];
    assert.deepEqual(await Promise.all(modes.map((at) => toMode(resolve(weights.dataDir, at)))), [
      '700',
      '700',
      '644',
    ]);
    assert.equal(filesSent(), Object.keys(model).length);
    await hub.close();
    assert.equal((await provide(repo)).path, path);
    const [listed] = await weights.store.list();
    assert.deepEqual([listed?.name, listed?.isWhole], [name, true]);
  });

  it('progress is reported, and the wait ends with its signal while the pull goes on', async () => {
    hub.pauseAfter(40_000);
    const reports: string[] = [];
    const controller = new AbortController();
    const waiting = provide(repo, { signal: controller.signal }, reports);
    const isHalf = () => reports.some((one) => /^fetching weights [45]\d %$/.test(one));
    await until('half of it is there', isHalf);
    controller.abort();
    await assert.rejects(waiting, { name: 'AbortError' });
    hub.release();
    assert.equal((await provide(repo)).isWhole, true);
    assert.equal(filesSent(), Object.keys(model).length);
  });

  it('a revision has a folder of its own', async () => {
    hub.add(`${repo}@v2`, { ...model, 'config.json': text('{"v":2}') });
    const [one, other] = [await provide(repo), await provide(`${repo}@v2`)];
    assert.equal(other.name, 'meta-llama--Llama-3.1-8B-Instruct@v2/safetensors');
    assert.equal(await readFile(join(other.path, 'config.json'), 'utf8'), '{"v":2}');
    assert.notEqual(one.commit, other.commit);
    await assert.rejects(provide(`${repo}@v3`), /Llama-3.1-8B-Instruct@v3 does not exist/);
  });

  it('a small file is checked too, by its git checksum', async () => {
    hub.add(repo, { 'config.json': text('{}'), 'model.safetensors': shards[0] });
    hub.corrupt(20);
    await assert.rejects(provide(repo), /config.json does not have the checksum/);
  });

  it('a GGUF file is chosen by its quantisation, and one that is stored is used', async () => {
    const gguf = 'bartowski/Llama-GGUF';
    const file = randomGguf(10_000);
    hub.add(gguf, { 'x-Q4_K_M.gguf': file, 'x-Q8_0.gguf': randomGguf(20_000) });
    const format: Format = 'gguf';
    const { path } = await provide(`${gguf}:Q4_K_M`, { format });
    assert.deepEqual(await readFile(path), file);
    await hub.close();
    assert.equal((await provide(gguf, { format })).path, path);
    assert.equal((await provide(`${gguf}/x-Q4_K_M.gguf`, { format })).path, path);
    await assert.rejects(provide(`${gguf}:Q8_0`, { format }), /is unavailable/);
  });

  it('a token is sent if the server has none', async () => {
    hub.add(repo, model, { token: 'hf_secret' });
    await assert.rejects(provide(repo), /private or gated.*set models.hub_token or HF_TOKEN/);
    assert.equal((await provide(repo, { token: 'hf_secret' })).isWhole, true);
  });

  it('too little room on the disk and another kind of repository are said', async () => {
    const of = await openTestWeights(hub, { freeBytes: async () => 70_000 });
    await assert.rejects(provide(repo, { of }), /This needs 0.000 GiB more on disk/);
    hub.add('a/b', { 'config.json': text('{}') });
    await assert.rejects(provide('a/b'), /a\/b holds no weights for vLLM and SGLang/);
  });

  it('a pull that was cancelled begins again while an engine waits for it', async () => {
    hub.pauseAfter(10);
    const waiting = provide(repo);
    const { id } = await running(repo);
    await weights.pulls.cancel(weights.person, id, false);
    hub.release();
    assert.equal((await waiting).isWhole, true);
    assert.notEqual((await lastPull()).id, id);
  });

  it('the token is sealed with the pull, outlives its process, and goes when the pull has ended', async () => {
    hub.add(repo, model, { token: 'hf_secret' });
    const killed = await openTestWeights(hub, { concurrency: 0 });
    const controller = new AbortController();
    const { signal } = controller;
    const waiting = provide(repo, { of: killed, token: 'hf_secret', signal });
    const readTokens = async () => {
      const rows = await killed.db.selectFrom('weight_pulls').select('hub_token').execute();
      return rows.map(({ hub_token }) => hub_token);
    };
    const token = await until('it waits', async () => (await readTokens())[0]);
    assert.match(token, /^[A-Za-z0-9+/=]{20,}$/);
    controller.abort();
    await assert.rejects(waiting, { name: 'AbortError' });
    const next = await openTestWeights(hub, { on: killed });
    assert.equal((await provide(repo, { of: next, token: 'hf_secret' })).isWhole, true);
    assert.deepEqual(await readTokens(), [null]);
  });

  it('only an owner changes weights that a deployment names, and its pull ends with it', async () => {
    const member = { ...weights.person, role: 'member' } as const;
    const gguf = 'bartowski/Llama-GGUF';
    hub.add(gguf, { 'x-Q4_K_M.gguf': randomGguf(10_000), 'x-Q8_0.gguf': randomGguf(20_000) });
    let users = [{ name: 'chat', isStopped: false }];
    weights.pulls.usersOf = async (candidates) => {
      const named = findNamed(parseSource(gguf), 'gguf', candidates);
      return new Map(named === undefined ? [] : [[named.name, users]]);
    };
    const refusal = { code: 'forbidden', name: 'Refusal' };
    const pull = (person: SessionPrincipal, file: string) =>
      weights.pulls.create(person, { repo: gguf, file });
    await assert.rejects(pull(member, 'x-Q4_K_M.gguf'), refusal);
    const { id } = await pull(weights.person, 'x-Q8_0.gguf');
    await weights.ended(id);
    await assert.rejects(pull(member, 'x-Q4_K_M.gguf'), {
      ...refusal,
      message: /Q4_K_M.gguf is used by the deployment chat. Only an owner may pull it again or/,
    });
    assert.equal((await pull(member, 'x-Q8_0.gguf')).name, 'bartowski--Llama-GGUF/x-Q8_0.gguf');
    hub.pauseAfter(10);
    const controller = new AbortController();
    const { signal } = controller;
    const format: Format = 'gguf';
    const waiting = provide(`${gguf}:Q4_K_M`, { format, signal });
    const own = await running('Q4_K_M');
    await assert.rejects(weights.pulls.cancel(member, own.id, false), refusal);
    controller.abort();
    await assert.rejects(waiting, { name: 'AbortError' });
    await weights.pulls.endUnneeded();
    assert.equal((await lastPull()).state, 'running');
    users = [{ name: 'chat', isStopped: true }];
    await weights.pulls.endUnneeded();
    assert.equal((await lastPull()).state, 'cancelled');
    hub.release();
  });

  it('removal leaves nothing, not even what an engine wrote there', async () => {
    const { name, path } = await provide(repo);
    await writeFile(join(path, 'cache.tmp'), '');
    await weights.pulls.removeWeights(weights.person, name);
    assert.deepEqual(await readdir(join(weights.dataDir, 'models')), ['store-id']);
  });
});
