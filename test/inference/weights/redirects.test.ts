// Where a hub may redirect to: to https on the internet, and into a private network only if the hub is there itself.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { findFault, Hub } from '#inference/weights/hub.ts';

describe('redirects of a hub', () => {
  let location = '';
  let hits = 0;
  const hub = createServer((request, response) => {
    hits += 1;
    if (request.url?.startsWith('/o/n/')) response.writeHead(302, { location }).end();
    else response.end('bytes');
  });
  let port = 0;
  before(async () => {
    hub.listen(0);
    await once(hub, 'listening');
    ({ port } = hub.address() as AddressInfo);
  });
  after(() => hub.close());

  async function open(to: string, publicAddress: string) {
    location = to;
    hits = 0;
    const isPublic = (address: string) => address === publicAddress;
    const client = new Hub({ url: `http://127.0.0.5:${port}`, token: null }, { isPublic });
    const signal = new AbortController().signal;
    const file = { repo: 'o/n', commit: '0'.repeat(40), path: 'x' };
    try {
      const { body } = await client.open(file, 0, { signal });
      const chunks: Buffer[] = [];
      for await (const chunk of body) chunks.push(chunk);
      return Buffer.concat(chunks).toString();
    } finally {
      await client.close();
    }
  }

  it('a hub on the internet leads neither to an address nor to a name in a private network', async () => {
    for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
      const opened = open(`https://${host}:${port}/file`, '127.0.0.5');
      await assert.rejects(
        opened,
        /redirects into a private network, but is not in one itself/,
        host,
      );
      assert.equal(hits, 1);
    }
  });

  it('only https is followed, or the host of a hub without it', async () => {
    for (const to of [
      `http://localhost:${port}/file`,
      'ftp://localhost/file',
      'file:///etc/passwd',
    ])
      await assert.rejects(open(to, 'none'), /redirects to an address that is not https/, to);
    assert.equal(await open(`http://127.0.0.5:${port}/file`, 'none'), 'bytes');
    await assert.rejects(open('http://[', 'none'), /redirects to no address/);
  });

  it('a hub in a private network may lead to another host of it', async () => {
    // Without a certificate, the connection fails only once it is made.
    await assert.rejects(open(`https://localhost:${port}/file`, 'none'), /is unavailable: (?!it)/);
  });

  it('a hub with https never leads away from it', () => {
    const secure = new URL('https://hub.example');
    assert.match(findFault(new URL('http://hub.example/x'), secure) ?? '', /not https/);
    assert.equal(findFault(new URL('https://cdn.example/x'), secure), null);
  });

  it('redirects in circles end', async () => {
    await assert.rejects(open(`http://127.0.0.5:${port}/o/n/x`, 'none'), /redirects in circles/);
    assert.equal(hits, 6);
  });
});
