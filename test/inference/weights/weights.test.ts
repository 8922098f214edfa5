// Pulling from a hub on loopback: what arrives, what is refused, and what is left behind.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { databases } from '#test/support/databases.ts';
import { randomGguf } from '#test/support/gguf.ts';
import { startHub } from '#test/support/hub.ts';
import { until } from '#test/support/until.ts';
import { openTestWeights, type TestWeights } from '#test/support/weights.ts';

const model = 'llama3.1-8b-instruct';
const repo = 'bartowski/Meta-Llama-3.1-8B-Instruct-GGUF';
const file = 'Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf';
const name = `${repo.replace('/', '--')}/${file}`;
const bytes = randomGguf(300_000);

async function startKnownHub() {
  const hub = await startHub();
  hub.add(repo, { 'README.md': Buffer.from('hello'), [file]: bytes });
  return hub;
}

const pathOf = ({ dataDir }: TestWeights, stored = name) => join(dataDir, 'models', stored);
const sizeOf = (path: string) =>
  stat(path).then(
    ({ size }) => size,
    () => 0,
  );

for (const database of databases) {
  describe(`pulling on ${database}`, () => {
    it('a model id pulls its known repository, is verified and served at once', async () => {
      const hub = await startKnownHub();
      const weights = await openTestWeights(hub, { database });
      const changed: string[] = [];
      weights.bindings.subscribe((id) => changed.push(id));
      const { id } = await weights.pulls.create(weights.person, { model });
      const row = await weights.ended(id);
      assert.equal(row.error, null);
      assert.equal(row.state, 'done');
      assert.equal(row.bytes_done, bytes.length);
      const path = pathOf(weights);
      assert.deepEqual(await readFile(path), bytes);
      const checksum = createHash('sha256').update(bytes).digest('hex');
      assert.deepEqual(weights.bindings.find(model), {
        path,
        name,
        checksum,
        kind: 'chat',
      });
      assert.deepEqual(changed, [model]);
    });

    it('removed weights no longer serve and are deleted', async () => {
      const hub = await startKnownHub();
      const weights = await openTestWeights(hub, { database });
      await weights.ended((await weights.pulls.create(weights.person, { model })).id);
      const changed: string[] = [];
      weights.bindings.subscribe((id) => changed.push(id));
      await weights.pulls.removeWeights(weights.person, name);
      assert.equal(weights.bindings.find(model), undefined);
      assert.deepEqual(changed, [model]);
      assert.deepEqual(await readdir(join(weights.dataDir, 'models')), ['store-id']);
      const events = await weights.db.selectFrom('audit_events').select('action').execute();
      assert.deepEqual(
        events.map(({ action }) => action),
        ['pull.created', 'weights.removed'],
      );
      await assert.rejects(weights.pulls.removeWeights(weights.person, '../../etc/passwd'), {
        code: 'not_found',
      });
    });

    it('a cancelled pull stops and leaves nothing, or its partial file if that is kept', async () => {
      const hub = await startKnownHub();
      const weights = await openTestWeights(hub, { database });
      for (const keep of [true, false]) {
        hub.pauseAfter(100_000);
        const { id } = await weights.pulls.create(weights.person, { model });
        await until('bytes on disk', async () => (await sizeOf(`${pathOf(weights)}.part`)) > 0);
        await weights.pulls.cancel(weights.person, id, keep);
        assert.equal((await weights.ended(id)).state, 'cancelled');
        await until('the hub is left alone', () => hub.sending() === 0);
        assert.equal(existsSync(`${pathOf(weights)}.part`), keep);
        await assert.rejects(weights.pulls.cancel(weights.person, id, false), { code: 'conflict' });
      }
      assert.deepEqual(await weights.store.list(), []);
    });

    it('at most the configured number of pulls run at once', async () => {
      const hub = await startHub();
      const files = ['a', 'b', 'c', 'd', 'e'].map((letter) => `${letter}.gguf`);
      hub.add('o/n', Object.fromEntries(files.map((one) => [one, randomGguf(50_000)])));
      hub.pauseAfter(1_000);
      const weights = await openTestWeights(hub, { database, concurrency: 2 });
      const pulls = [];
      for (const one of files) {
        pulls.push(await weights.pulls.create(weights.person, { repo: 'o/n', file: one }));
      }
      await until('two run', () => hub.sending() === 2);
      const states = (await weights.pulls.list(weights.person.accountId)).map(({ state }) => state);
      assert.deepEqual(states.sort(), ['queued', 'queued', 'queued', 'running', 'running']);
      let most = 0;
      const watching = setInterval(() => {
        most = Math.max(most, hub.sending());
      }, 1);
      hub.release();
      for (const { id } of pulls) assert.equal((await weights.ended(id)).state, 'done');
      clearInterval(watching);
      assert(most <= 2, `${most} ran at once`);
    });

    it('a pull stopped with its server resumes with the next one, which fetches only the rest', async () => {
      const hub = await startKnownHub();
      const weights = await openTestWeights(hub, { database });
      hub.pauseAfter(120_000);
      const { id } = await weights.pulls.create(weights.person, { model });
      const part = `${pathOf(weights)}.part`;
      await until('the first bytes', async () => (await sizeOf(part)) === 120_000);
      await weights.stop();
      const row = await weights.pulls.get(weights.person.accountId, id);
      assert.equal(row.state, 'queued');
      assert.equal(row.bytes_done, 120_000);
      await until('the hub has noticed', () => hub.sending() === 0);
      hub.release();
      const next = await openTestWeights(hub, { on: weights });
      assert.equal((await next.ended(id)).state, 'done');
      assert.deepEqual(await readFile(pathOf(next)), bytes);
      assert.equal(hub.seen.at(-1)?.range, 'bytes=120000-');
      assert.equal(hub.bytesSent(), bytes.length);
    });
  });
}

describe('fetching', () => {
  const once = async (weights: TestWeights, request: object) =>
    weights.ended((await weights.pulls.create(weights.person, request)).id);

  it('a broken download resumes where it broke, and fetches nothing twice', async () => {
    const hub = await startKnownHub();
    hub.cutAfter(70_000, 3);
    const weights = await openTestWeights(hub);
    assert.equal((await once(weights, { model })).state, 'done');
    assert.deepEqual(await readFile(pathOf(weights)), bytes);
    const ranges = hub.seen.filter(({ host }) => host === 'cdn').map(({ range }) => range);
    assert.equal(ranges[0], undefined);
    assert.equal(ranges.length, 4);
    // What was on the wire when it was cut may be lost, but nothing that was written.
    for (const range of ranges.slice(1)) assert.match(range ?? '', /^bytes=[1-9]\d*-$/);
  });

  it('a hub without range support is read from the beginning', async () => {
    const hub = await startKnownHub();
    hub.ignoreRanges();
    hub.cutAfter(70_000, 1);
    const weights = await openTestWeights(hub);
    assert.equal((await once(weights, { model })).state, 'done');
    assert.deepEqual(await readFile(pathOf(weights)), bytes);
  });

  it('a temporary failure of the hub is retried, and a lasting one fails the pull', async () => {
    const hub = await startKnownHub();
    const weights = await openTestWeights(hub);
    // A signed address that is too old is refused with 403: that is no word of the hub about us.
    for (const status of [503, 429, 403]) {
      hub.fail(status, 3);
      assert.equal((await once(weights, { model })).state, 'done');
      await weights.pulls.removeWeights(weights.person, name);
    }
    hub.fail(503, 1_000);
    const row = await once(weights, { model });
    assert.equal(row.state, 'failed');
    assert.match(row.error ?? '', /is unavailable: it answered 503/);
  });

  it('a wrong checksum fails the pull, and the data is deleted', async () => {
    const hub = await startKnownHub();
    hub.corrupt(1);
    const weights = await openTestWeights(hub);
    const row = await once(weights, { model });
    assert.equal(row.state, 'failed');
    assert.match(row.error ?? '', /does not have the checksum/);
    assert.equal(existsSync(pathOf(weights)), false);
    assert.equal(existsSync(`${pathOf(weights)}.part`), false);
    assert.equal(weights.bindings.find(model), undefined);
  });

  it('a partial file that was damaged on disk is fetched again', async () => {
    const hub = await startKnownHub();
    const weights = await openTestWeights(hub);
    hub.fail(503, 4);
    assert.equal((await once(weights, { model })).state, 'failed');
    await writeFile(`${pathOf(weights)}.part`, randomBytes(100_000));
    assert.equal((await once(weights, { model })).state, 'done');
    assert.deepEqual(await readFile(pathOf(weights)), bytes);
  });

  it('a new version on the hub replaces the old one', async () => {
    const hub = await startKnownHub();
    const weights = await openTestWeights(hub);
    await once(weights, { model });
    const newer = randomGguf(bytes.length);
    hub.add(repo, { [file]: newer });
    const served: (string | undefined)[] = [];
    weights.bindings.subscribe((id) => served.push(weights.bindings.find(id)?.checksum));
    assert.equal((await once(weights, { model })).state, 'done');
    assert.deepEqual(served, [undefined, createHash('sha256').update(newer).digest('hex')]);
    assert.deepEqual(await readFile(pathOf(weights)), newer);
  });

  it('weights on disk are bound to another model without fetching', async () => {
    const hub = await startKnownHub();
    const weights = await openTestWeights(hub);
    await once(weights, { model });
    const sent = hub.bytesSent();
    assert.equal((await once(weights, { repo, file, as: 'hermes3-8b' })).state, 'done');
    assert.equal(hub.bytesSent(), sent);
    assert.deepEqual(weights.bindings.modelsOf(name).sort(), ['hermes3-8b', model]);
  });

  it('split weights are pulled with all their parts, and an engine opens the first', async () => {
    const hub = await startHub();
    const parts = [1, 2, 3].map((part) => `Q4_K_M/big-Q4_K_M-0000${part}-of-00003.gguf`);
    const contents = parts.map(() => randomGguf(40_000));
    hub.add(
      'o/n',
      Object.fromEntries(parts.map((part, index) => [part, contents[index] as Buffer])),
    );
    const weights = await openTestWeights(hub);
    const row = await once(weights, { repo: 'o/n', as: model });
    assert.equal(row.state, 'done');
    assert.equal(row.bytes_total, 120_000);
    const path = weights.bindings.find(model)?.path ?? '';
    assert.equal(path, pathOf(weights, 'o--n/Q4_K_M--big-Q4_K_M-00001-of-00003.gguf'));
    const second = path.replace('-00001-of', '-00002-of');
    assert.deepEqual(await readFile(second), contents[1]);
  });

  it('the token goes to the hub and never to the host it redirects to', async () => {
    const hub = await startHub();
    hub.add('o/gated', { 'm-Q4_K_M.gguf': bytes }, { token: 'hf_secret' });
    const stranger = await openTestWeights(hub);
    await assert.rejects(stranger.pulls.create(stranger.person, { repo: 'o/gated' }), {
      code: 'denied',
      message: /set models\.hub_token or HF_TOKEN/,
    });
    const weights = await openTestWeights(hub, { hubToken: 'hf_secret' });
    assert.equal((await once(weights, { repo: 'o/gated' })).state, 'done');
    const cdn = hub.seen.filter(({ host }) => host === 'cdn');
    assert(cdn.length > 0);
    for (const { authorization } of cdn) assert.equal(authorization, undefined);
    const rows = JSON.stringify(await weights.db.selectFrom('weight_pulls').selectAll().execute());
    assert(!rows.includes('hf_secret'));
  });
});

describe('the store', () => {
  it('a damaged manifest is ignored', async () => {
    const hub = await startKnownHub();
    const weights = await openTestWeights(hub);
    await weights.ended((await weights.pulls.create(weights.person, { model })).id);
    for (const text of ['{', '{}', 'null', '{"repo":"o/n","files":[]}']) {
      await writeFile(`${pathOf(weights)}.json`, text);
      await weights.tidy();
      assert.deepEqual(await weights.store.list(), []);
      assert.equal(weights.bindings.find(model), undefined);
    }
    await weights.ended((await weights.pulls.create(weights.person, { model })).id);
    assert.equal(weights.bindings.find(model)?.name, name);
  });

  it('a deleted file no longer serves', async () => {
    const hub = await startKnownHub();
    const weights = await openTestWeights(hub);
    await weights.ended((await weights.pulls.create(weights.person, { model })).id);
    await rm(pathOf(weights));
    await weights.tidy();
    assert.equal(weights.bindings.find(model), undefined);
  });
});

describe('refusing', () => {
  it('weights that do not fit on the disk are refused before a byte is fetched', async () => {
    const hub = await startKnownHub();
    const weights = await openTestWeights(hub, {
      freeBytes: async () => bytes.length + 999,
      diskReserveBytes: 1_000,
    });
    await assert.rejects(weights.pulls.create(weights.person, { model }), { code: 'no_space' });
    assert.equal(hub.bytesSent(), 0);
    assert.deepEqual(await weights.pulls.list(weights.person.accountId), []);
  });

  it('a pull stops when something else takes the room that stays reserved, and can go on later', async () => {
    const hub = await startKnownHub();
    hub.pauseAfter(1_000);
    let free = 10_000_000;
    const weights = await openTestWeights(hub, {
      freeBytes: async () => free,
      diskReserveBytes: 1_000_000,
    });
    const { id } = await weights.pulls.create(weights.person, { model });
    const read = () => weights.pulls.get(weights.person.accountId, id);
    await until('it runs', async () => (await read()).bytes_done === 1_000);
    free = 999_999;
    const { error } = await until('it stops', async () => {
      const pull = await read();
      return pull.state === 'failed' ? pull : null;
    });
    assert.match(error ?? '', /more on disk.*stay reserved/);
    free = 10_000_000;
    hub.release();
    const again = await weights.pulls.create(weights.person, { model });
    await until('it is whole', async () => {
      const { state } = await weights.pulls.get(weights.person.accountId, again.id);
      return state === 'done';
    });
  });

  it('disk space that another pull still needs is not given twice', async () => {
    const hub = await startKnownHub();
    hub.add('o/n', { 'other.gguf': randomGguf(200_000) });
    hub.pauseAfter(10);
    const weights = await openTestWeights(hub, { freeBytes: async () => 400_000 });
    const { id } = await weights.pulls.create(weights.person, { model });
    await assert.rejects(weights.pulls.create(weights.person, { repo: 'o/n' }), {
      code: 'no_space',
    });
    await weights.pulls.cancel(weights.person, id, false);
  });

  it('weights that are being pulled are neither removed nor pulled for another id', async () => {
    const hub = await startKnownHub();
    hub.pauseAfter(1_000);
    const weights = await openTestWeights(hub);
    const { id } = await weights.pulls.create(weights.person, { model });
    await until('it runs', async () => (await weights.store.list()).length === 1);
    const again = await weights.pulls.create(weights.person, { model });
    assert.equal(again.id, id);
    await assert.rejects(weights.pulls.create(weights.person, { model, as: 'hermes3-8b' }), {
      code: 'conflict',
    });
    await assert.rejects(weights.pulls.removeWeights(weights.person, name), { code: 'conflict' });
    hub.release();
    assert.equal((await weights.ended(id)).state, 'done');
  });

  it('an unknown model, repository or file is refused with the reason', async () => {
    const hub = await startKnownHub();
    const weights = await openTestWeights(hub);
    const refused = (request: object, message: RegExp) =>
      assert.rejects(weights.pulls.create(weights.person, request), { message });
    await refused({}, /either model or repo/);
    await refused({ model, repo }, /either model or repo/);
    await refused({ model: 'llama3.1-8b-instrct' }, /Did you mean llama3\.1-8b-instruct\?/);
    await refused({ model: 'lfm-40b' }, /No GGUF of lfm-40b is known/);
    await refused({ repo, as: 'nothing' }, /There is no model "nothing"/);
    await refused({ model, quant: 'Q8_0' }, /has no Q8_0\. It has: Q4_K_M\./);
    await refused({ repo, file: 'other.gguf' }, /has no other\.gguf\. It has: Meta/);
    await refused({ repo, file: '../../x.gguf' }, /not the name of a GGUF file/);
    await refused({ repo: 'o/unknown' }, /does not exist on .*, or is private or gated/);
    await hub.close();
    await refused({ model }, /is unavailable: it refused the connection/);
  });
});
