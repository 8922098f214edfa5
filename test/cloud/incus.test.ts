// The incus driver against what every driver keeps, on a real daemon: over its socket, and over HTTPS with
// a certificate enrolled by a one-time token.

import { randomBytes } from 'node:crypto';
import { createIncusDriver, type IncusOptions } from '../../src/cloud/drivers/incus/incus.ts';
import { checkDriver } from '../conformance/driver.ts';
import type { Lxd } from '../support/lxd.ts';
import { noLxd } from '../support/lxd-daemon.ts';
import { startSmallLxd } from './incus-fixture.ts';

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
    new URL('../../src/cloud/drivers/incus/incus.ts', import.meta.url),
    'createIncusDriver',
    options,
  ],
  dispose: async () => lxd?.stop(),
});
