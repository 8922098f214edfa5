// The incus driver over HTTPS: enrolment by a one-time token, a server that is known by its certificate,
// and the same conformance as over the socket.

import assert from 'node:assert/strict';
import { randomBytes, X509Certificate } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { checkEndpoint } from '#cloud/drivers/incus/checks.ts';
import type { IncusOptions } from '#cloud/drivers/incus/context.ts';
import { createIdentity, type Identity } from '#cloud/drivers/incus/daemon/client-certificate.ts';
import { type EnrolledEndpoint, enrol, parseToken } from '#cloud/drivers/incus/daemon/enrolment.ts';
import { createIncusDriver } from '#cloud/drivers/incus/incus.ts';
import { startSmallLxd } from '#test/support/cloud/incus-fixture.ts';
import { checkDriver } from '#test/support/conformance/driver.ts';
import type { Lxd } from '#test/support/lxd/lxd.ts';
import { makeToken, noLxd } from '#test/support/lxd/lxd-daemon.ts';

describe('enrolment', { skip: noLxd, timeout: 60_000 }, () => {
  let lxd: Lxd;
  let identity: Identity;
  let enrolled: EnrolledEndpoint;
  before(async () => {
    lxd = await startSmallLxd();
    identity = createIdentity('millrace test');
  });
  after(() => lxd.stop());

  const options = (changes: Partial<IncusOptions['endpoint']> = {}): IncusOptions => ({
    endpoint: { ...enrolled, ...identity, ...changes },
    owner: 'nobody',
    network: lxd.network,
  });

  test('a token makes the endpoint trust our certificate, and holds its address', async () => {
    enrolled = await enrol(await makeToken(lxd, 'first'), identity);
    assert.equal(enrolled.url, lxd.httpsUrl);
    const listed = await lxd.request<string[]>('GET', '/1.0/certificates');
    const { fingerprint256 } = new X509Certificate(identity.certificate);
    const fingerprint = fingerprint256.replaceAll(':', '').toLowerCase();
    assert.deepEqual(listed, [`/1.0/certificates/${fingerprint}`]);
    const checks = await checkEndpoint(options());
    assert.deepEqual(
      checks.map(({ name, ok }) => `${name} ${ok}`),
      ['reachability', 'trust', 'storage', 'network', 'images', 'gpus'].map(
        (name) => `${name} true`,
      ),
    );
  });

  test('a token works once, and enrolling again with a trusted certificate changes nothing', async () => {
    const token = await makeToken(lxd, 'second');
    const other = createIdentity('another');
    await enrol(token, other);
    await enrol(token, other);
    await assert.rejects(enrol(token, createIdentity('third')), /could not be enrolled/);
  });

  test('an invalid or expired token is refused before any request is sent', async () => {
    await assert.rejects(enrol('bm8=', identity), /not a trust token/);
    const token = await makeToken(lxd, 'old');
    const read = JSON.parse(Buffer.from(token, 'base64').toString());
    const old = { ...read, expires_at: '2020-01-01T00:00:00Z' };
    const expired = Buffer.from(JSON.stringify(old)).toString('base64');
    await assert.rejects(enrol(expired, identity), /expired/);
    assert.equal(parseToken(token).addresses.length, 1);
  });

  test('no request is sent to a server with another certificate', async () => {
    const serverFingerprint = '0'.repeat(64);
    await assert.rejects(createIncusDriver(options({ serverFingerprint })), /fingerprint/);
    const [reachability] = await checkEndpoint(options({ serverFingerprint }));
    assert.equal(reachability?.ok, false);
  });

  test('an endpoint that does not trust our certificate is reported as reachable but not trusted', async () => {
    const stranger = createIdentity('stranger');
    const checks = await checkEndpoint(options(stranger));
    assert.deepEqual(
      checks.map(({ ok }) => ok),
      [true, false, false, false, false, false],
    );
    await assert.rejects(createIncusDriver(options(stranger)), /does not trust this server/);
  });

  test('a missing pool, network or image is named by its check', async () => {
    const wrong = { pool: 'no-pool', network: 'no-net', defaultImage: 'no-image' };
    const checks = await checkEndpoint({ ...options(), ...wrong });
    const failed = new Map(checks.filter(({ ok }) => !ok).map((one) => [one.name, one.message]));
    assert.deepEqual([...failed.keys()], ['storage', 'network', 'images', 'gpus']);
    assert.match(failed.get('network')!, /no-net/);
    assert.match(failed.get('images')!, /no-image/);
  });
});

let lxd: Lxd | undefined;
const options = {} as { -readonly [Key in keyof IncusOptions]: IncusOptions[Key] };

checkDriver({
  name: 'incus, over HTTPS',
  skip: noLxd,
  async create() {
    if (!lxd) {
      lxd = await startSmallLxd();
      const identity = createIdentity('millrace test');
      const enrolled = await enrol(await makeToken(lxd, 'conformance'), identity);
      options.endpoint = { ...identity, ...enrolled };
      options.owner = randomBytes(16).toString('hex');
      options.network = lxd.network;
    }
    return createIncusDriver(options);
  },
  inChild: [
    new URL('../../../../src/cloud/drivers/incus/incus.ts', import.meta.url),
    'createIncusDriver',
    options,
  ],
  dispose: async () => lxd?.stop(),
});
