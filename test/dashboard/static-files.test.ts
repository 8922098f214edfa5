// How the server delivers the dashboard's files: headers, compression and size.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

describe('serving the dashboard', () => {
  let server: TestServer;
  before(async () => {
    // As the launcher sets it.
    process.env.MILLRACE_PROGRAM = './millrace';
    server = await startTestServer();
    const isBuilt = async () => (await fetchPage()).status !== 503;
    await until('the dashboard is built', isBuilt, 120_000);
  });

  after(() => {
    delete process.env.MILLRACE_PROGRAM;
  });

  // As a browser: clients that name no type get what Ollama says.
  const fetchPage = () => server.fetch('/', { headers: { accept: 'text/html' } });
  const assetsOf = (html: string) =>
    [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path as string);

  test('the policy allows scripts from files only, no framing, and styles with a new nonce', async () => {
    const [one, other] = await Promise.all([fetchPage(), fetchPage()]);
    const policy = one.headers.get('content-security-policy') ?? '';
    assert.match(policy, /default-src 'none'; script-src 'self';/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.doesNotMatch(policy, /unsafe/);
    assert.notEqual(policy, other.headers.get('content-security-policy'));
    const [, nonce] = /'nonce-([^']+)'/.exec(policy) ?? [];
    const html = await one.text();
    assert.ok(html.includes(`<meta property="csp-nonce" nonce="${nonce}">`));
    assert.doesNotMatch(html, /<script(?![^>]*\ssrc=)/);
    assert.equal(one.headers.get('x-frame-options'), 'DENY');
    assert.equal(one.headers.get('x-content-type-options'), 'nosniff');
    assert.equal(one.headers.get('referrer-policy'), 'no-referrer');
    assert.equal(one.headers.get('cache-control'), 'no-cache');
  });

  test('the page names the program as it was started', async () => {
    const html = await (await fetchPage()).text();
    assert.match(html, /<meta name="millrace-program" content="\.\/millrace"/);
  });

  test('hashed assets are cached forever and compressed', async () => {
    const assets = assetsOf(await (await fetchPage()).text());
    assert.ok(assets.length >= 2);
    for (const path of assets) {
      for (const encoding of ['br', 'gzip']) {
        const response = await server.fetch(path, { headers: { 'accept-encoding': encoding } });
        assert.equal(response.headers.get('content-encoding'), encoding);
        assert.match(response.headers.get('cache-control') ?? '', /max-age=31536000, immutable/);
        assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
      }
    }
  });

  test('the first load is a few files of at most 300 kB of gzip', async () => {
    const assets = assetsOf(await (await fetchPage()).text());
    assert.ok(assets.length <= 6, assets.join('\n'));
    let bytes = 0;
    for (const path of assets) {
      const response = await server.fetch(path, { headers: { 'accept-encoding': 'gzip' } });
      bytes += Number(response.headers.get('content-length'));
    }
    assert.ok(bytes > 50_000 && bytes <= 300_000, `${bytes} bytes`);
  });

  test('no path leads out of the assets folder', async () => {
    for (const path of [
      '/assets/..%2findex.html',
      '/assets/%2e%2e%2f%2e%2e%2fbuild.ts',
      '/assets/x',
    ]) {
      const response = await server.fetch(path);
      assert.equal(response.status, 404, path);
      assert.match(await response.text(), /unknown_url/);
    }
  });

  test('a browser gets a page at an unknown address, except below an API', async () => {
    const headers = { accept: 'text/html,application/xhtml+xml' };
    const response = await server.fetch('/nothing', { headers });
    assert.equal(response.status, 404);
    assert.match(response.headers.get('content-type') ?? '', /text\/html/);
    assert.match(await response.text(), /<h1>Page not found<\/h1>.*<a href="\/">/s);
    for (const path of ['/v1/nothing', '/api/v1/nothing', '/dashboard/api/nothing'])
      assert.match(await (await server.fetch(path, { headers })).text(), /^\{/);
  });

  test('unknown paths are 404 errors in the format of their API', async () => {
    for (const path of ['/v1/nothing', '/api/v1/nothing', '/dashboard/api/nothing', '/nothing']) {
      const response = await server.fetch(path);
      assert.equal(response.status, 404, path);
      assert.match(response.headers.get('content-type') ?? '', /application\/json/);
    }
  });
});
