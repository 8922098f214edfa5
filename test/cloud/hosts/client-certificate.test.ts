// The certificate that a server creates for itself is valid for others: Node parses it, and TLS accepts it.

import assert from 'node:assert';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { createIdentity } from '#cloud/drivers/incus/daemon/client-certificate.ts';
import { loadClientCertificate } from '#cloud/hosts/client-certificate.ts';

const now = Date.parse('2026-11-15T00:00:00Z');

describe('the client certificate', () => {
  test('it has a name and a validity, and is signed by its key', () => {
    const { certificate, key } = createIdentity('millrace', now);
    const read = new X509Certificate(certificate);
    assert.equal(read.subject, 'CN=millrace');
    assert.equal(read.issuer, 'CN=millrace');
    assert.equal(read.validFromDate.toISOString(), '2026-11-14T00:00:00.000Z');
    assert.equal(read.validToDate.toISOString(), '2036-11-12T00:00:00.000Z');
    assert(read.verify(read.publicKey));
    assert(read.checkPrivateKey(createPrivateKey(key)));
    assert.deepEqual(read.keyUsage, ['1.3.6.1.5.5.7.3.2']);
  });

  test('each certificate is different, and may expire after 2050', () => {
    const serials = Array.from({ length: 20 }, () => {
      const { certificate } = createIdentity('x', Date.parse('2045-01-01T00:00:00Z'));
      const read = new X509Certificate(certificate);
      assert.equal(read.validToDate.getUTCFullYear(), 2054);
      return read.serialNumber;
    });
    assert.equal(new Set(serials).size, 20);
  });

  test('it is created once per data directory, and only its owner can read the key', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-certificate-'));
    const none = { certificate: null, key: null };
    const made = loadClientCertificate(folder, none, now);
    assert.deepEqual(loadClientCertificate(folder, none, now + 1), made);
    assert.equal((await stat(join(folder, 'incus-client.key'))).mode & 0o777, 0o600);
    const files = {
      certificate: join(folder, 'incus-client.crt'),
      key: join(folder, 'incus-client.key'),
    };
    assert.deepEqual(loadClientCertificate('/nonexistent', files, now), made);
    await rm(folder, { recursive: true });
  });

  test('a TLS server receives it from the client', async () => {
    const own = createIdentity('server', Date.now());
    const client = createIdentity('client', Date.now());
    const server = createServer({
      cert: own.certificate,
      key: own.key,
      requestCert: true,
      rejectUnauthorized: false,
    });
    const seen = once(server, 'secureConnection');
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const socket = connect({
      host: '127.0.0.1',
      port,
      cert: client.certificate,
      key: client.key,
      rejectUnauthorized: false,
    });
    await once(socket, 'secureConnect');
    const [peer] = (await seen) as [TLSSocket];
    const shown = peer.getPeerX509Certificate()?.fingerprint256;
    assert.equal(shown, new X509Certificate(client.certificate).fingerprint256);
    socket.destroy();
    server.close();
  });
});
