// The cloud's process is killed again and again while it makes machines on a real LXD: see crash-storm.ts.
// Fewer times than with other drivers, because each start and each machine takes longer.

import { after, before, describe, test } from 'node:test';
import { seed, storm } from '#test/support/cloud/crash-storm.ts';
import { startSmallLxd } from '#test/support/cloud/incus-fixture.ts';
import type { Lxd } from '#test/support/lxd/lxd.ts';
import { noLxd } from '#test/support/lxd/lxd-daemon.ts';

const kills = Number(process.env.MILLRACE_TEST_LXD_KILLS ?? 8);

describe('the cloud on LXD when its process is killed', { skip: noLxd, timeout: 240_000 }, () => {
  let lxd: Lxd;
  before(async () => {
    lxd = await startSmallLxd();
  });
  after(() => lxd.stop());

  test(`${kills} kills lose nothing (seed ${seed})`, (context) => {
    const endpoint = { url: `unix:${lxd.socket}`, network: lxd.network };
    return storm(context, { driver: 'incus', endpoint, kills, maxIdleMs: 1_000 });
  });
});
