// Weights of deployments on a real LXD host: one volume for all machines, filled from this computer.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { createDaemonClient, type DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import { createFixture, type Fixture } from '#test/support/cloud/incus-fixture.ts';
import { noLxd } from '#test/support/lxd/lxd-daemon.ts';
import { until } from '#test/support/until.ts';

interface Volume {
  readonly name: string;
  readonly config: Record<string, string>;
}

describe('weights on an LXD host', { skip: noLxd, timeout: 240_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-weights-'));
  const shard = randomBytes(3_000_000);
  let fixture: Fixture;
  let client: DaemonClient;
  let volumes: string;
  before(async () => {
    fixture = await createFixture();
    const { lxd } = fixture;
    client = createDaemonClient({ url: `unix:${lxd.socket}` }, 'default');
    volumes = `/1.0/storage-pools/${lxd.pool}/volumes/custom`;
    writeFileSync(join(folder, 'model.safetensors'), shard);
    writeFileSync(join(folder, '.blob'), '{"from":"server"}', { mode: 0o600 });
    symlinkSync('.blob', join(folder, 'config.json'));
  });
  after(async () => {
    await client?.close();
    await fixture?.close();
    rmSync(folder, { recursive: true });
  });
  const list = async () =>
    (await client.get<Volume[]>(volumes, { recursion: '1' })).filter(({ name }) =>
      name.startsWith('millrace-weights-'),
    );
  const fillers = async () =>
    (await client.get<{ name: string }[]>('/1.0/instances', { recursion: '1' })).filter(
      ({ name }) => name.startsWith('millrace-fill-'),
    );

  test('machines share one volume, which none of them can write', async () => {
    const [one, other] = await Promise.all([
      fixture.launch({ weights: folder }),
      fixture.launch({ weights: folder }),
    ]);
    for (const machine of [one, other]) {
      const text = await fixture.output(machine, 'cat /weights/config.json');
      assert.equal(text, '{"from":"server"}');
      const size = await fixture.output(machine, 'wc -c </weights/model.safetensors');
      assert.equal(Number(size), shard.length);
      const write = 'sudo touch /weights/x 2>&1 || true';
      assert.match(await fixture.output(machine, write), /Read-only file system/);
    }
    const [volume, ...others] = await list();
    assert.deepEqual([volume?.config['user.millrace.whole'], others.length], ['true', 0]);
    assert.deepEqual(await fillers(), []);
    await fixture.driver.sweepWeights?.([]);
    assert.equal((await list()).length, 1, 'a volume in use was removed');
    await Promise.all([one, other].map(({ id }) => fixture.driver.terminate(id)));
  });

  test('a copy that was cut off is made again, and one that is not needed is removed', async () => {
    const [volume] = await list();
    const { name = '' } = volume ?? {};
    const { 'user.millrace.whole': _, ...config } = volume?.config ?? {};
    await client.run('PUT', `${volumes}/${name}`, { body: { config } });
    // What a killed server leaves.
    const [image] = await client.get<{ fingerprint: string }[]>('/1.0/images', { recursion: '1' });
    const { pool } = fixture.lxd;
    const filler = {
      name: name.replace('weights', 'fill'),
      type: 'container',
      source: { type: 'image', fingerprint: image?.fingerprint },
      profiles: [],
      devices: {
        root: { type: 'disk', path: '/', pool },
        weights: { type: 'disk', pool, source: name, path: '/weights' },
      },
    };
    await client.run('POST', '/1.0/instances', { body: filler });
    const machine = await fixture.launch({ weights: folder });
    const text = await fixture.output(machine, 'cat /weights/config.json');
    assert.equal(text, '{"from":"server"}');
    assert.deepEqual(await fillers(), []);
    await fixture.driver.terminate(machine.id);
    await fixture.driver.sweepWeights?.([folder]);
    assert.equal((await list()).length, 1);
    writeFileSync(join(folder, 'model.safetensors'), 'changed');
    await fixture.driver.sweepWeights?.([folder]);
    assert.deepEqual(await list(), []);
  });

  test('machines that wait share one copy and its progress, and another server has its own', async () => {
    const prepare = async (driver: Fixture['driver']) =>
      driver.prepare?.(fixture.spec({ weights: folder }));
    const first = await Promise.all([prepare(fixture.driver), prepare(fixture.driver)]);
    for (const progress of first)
      assert.match(progress ?? '', /^copying weights to the host, \d+ %$/);
    const isReady = (driver: Fixture['driver']) => async () => (await prepare(driver)) === null;
    await until('it is there', isReady(fixture.driver));
    const [volume] = await list();
    const other = await fixture.open({ serverId: 'other', hostName: 'berlin' });
    assert.match((await prepare(other)) ?? '', /^copying weights to berlin, \d+ %$/);
    await until('it is there too', isReady(other));
    assert.equal((await list()).length, 2);
    await other.sweepWeights?.([]);
    assert.deepEqual(await list(), [volume]);
    await fixture.driver.sweepWeights?.([]);
  });

  test('weights that are not here are a reason', async () => {
    const spec = fixture.spec({ weights: join(folder, 'missing') });
    await assert.rejects(fixture.driver.launch(spec), /The weights can't be read at .*missing/);
    assert.deepEqual(await list(), []);
  });
});
