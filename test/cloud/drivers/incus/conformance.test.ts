// The incus driver against what every driver keeps, on a real daemon over its socket. `https.soak.ts` has the same over
// HTTPS.

import { randomBytes } from 'node:crypto';
import type { IncusOptions } from '#cloud/drivers/incus/context.ts';
import { createIncusDriver } from '#cloud/drivers/incus/incus.ts';
import { startSmallLxd } from '#test/support/cloud/incus-fixture.ts';
import { checkDriver } from '#test/support/conformance/driver.ts';
import type { Lxd } from '#test/support/lxd/lxd.ts';
import { noLxd } from '#test/support/lxd/lxd-daemon.ts';

let lxd: Lxd | undefined;
const options = {} as { -readonly [Key in keyof IncusOptions]: IncusOptions[Key] };

checkDriver({
  name: 'incus, over the socket',
  skip: noLxd,
  async create() {
    lxd ??= await startSmallLxd();
    options.endpoint = { url: `unix:${lxd.socket}` };
    options.owner ??= randomBytes(16).toString('hex');
    options.network = lxd.network;
    return createIncusDriver(options);
  },
  inChild: [
    new URL('../../../../src/cloud/drivers/incus/incus.ts', import.meta.url),
    'createIncusDriver',
    options,
  ],
  dispose: async () => lxd?.stop(),
});
