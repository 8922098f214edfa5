// Headers that protect people's browsers, on every surface: type sniffing, caching, TLS, cookies, names of the server
// (DNS rebinding) and pages of other sites.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { request as requestTls } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createIdentity } from '#cloud/drivers/incus/daemon/client-certificate.ts';
import { findFreePort } from '#test/support/free-port.ts';
import { gatewayModel as model, startGateway } from '#test/support/gateway.ts';
import { makeFolder, readFirstSecret, runMillrace, serveMillrace } from '#test/support/process.ts';
import { password, startTestServer, type TestServer } from '#test/support/server.ts';

const messages = [{ role: 'user', content: 'Hello' }];

async function talk(server: { url: string }, text: string): Promise<string> {
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
  socket.end(text);
  return (await socket.toArray()).join('');
}

/** The status of a request that names the server as `host`, and the code of its error. */
async function ask({ url, key }: TestServer, path: string, host: string) {
  const headers = { host, authorization: `Bearer ${key}` };
  const [response] = (await once(request(url + path, { headers }).end(), 'response')) as [
    IncomingMessage,
  ];
  const body = JSON.parse((await response.toArray()).join(''));
  return [response.statusCode, body.error?.code];
}

async function makeCertificate() {
  const { certificate, key } = createIdentity('localhost', Date.now());
  const folder = makeFolder();
  const files = { tls_certificate: join(folder, 'tls.crt'), tls_key: join(folder, 'tls.key') };
  writeFileSync(files.tls_certificate, certificate);
  writeFileSync(files.tls_key, key);
  return files;
}

describe('every response', () => {
  test('forbids sniffing and caching, on every surface and in every error', async (context) => {
    const { server } = await startGateway(context, { upstreams: [{}] });
    const owner = await server.join();
    const chat = '/v1/chat/completions';
    const responses: Record<string, Response> = {
      chat: await server.fetch(chat, { json: { model, messages } }),
      stream: await server.fetch(chat, { json: { model, messages, stream: true } }),
      'unknown model': await server.fetch(chat, { json: { model: 'none', messages } }),
      'invalid body': await server.fetch(chat, { json: {} }),
      models: await server.fetch('/v1/models'),
      'unknown path': await server.fetch('/v1/nothing'),
      'no key': await fetch(`${server.url}/v1/models`),
      'bad URL': await server.fetch('/v1/%zz'),
      instances: await server.fetch('/api/v1/instances'),
      'unknown id': await server.fetch('/api/v1/instances/0123'),
      me: await owner('/dashboard/api/me'),
      events: await owner('/dashboard/api/events'),
      ready: await fetch(`${server.url}/readyz`),
      metrics: await fetch(`${server.url}/metrics`),
      openapi: await fetch(`${server.url}/openapi.json`),
    };
    for (const [name, { headers, body }] of Object.entries(responses)) {
      assert.equal(headers.get('x-content-type-options'), 'nosniff', name);
      const isStream = headers.get('content-type')?.startsWith('text/event-stream');
      const caching = isStream ? 'no-cache, no-store' : 'no-store';
      assert.equal(headers.get('cache-control'), caching, name);
      assert.equal(headers.get('strict-transport-security'), null, name);
      await body?.cancel();
    }
    const malformed = await talk(server, 'GET /v1/models HTTP/9.9\r\n\r\n');
    assert.match(malformed, /x-content-type-options: nosniff\r\ncache-control: no-store/);
  });

  test('asks browsers to stay with TLS only over TLS, where the cookie is bound to the host', async () => {
    const server = await startTestServer({ config: { server: await makeCertificate() } });
    const { port } = new URL(server.url);
    const call = async (path: string, json: object | null, headers: Record<string, string>) => {
      const method = json === null ? 'GET' : 'POST';
      const type = json === null ? {} : { 'content-type': 'application/json' };
      const options = { port, path, method, rejectUnauthorized: false };
      const sent = requestTls({ ...options, headers: { ...type, ...headers } });
      sent.end(json === null ? undefined : JSON.stringify(json));
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      await response.toArray();
      return response;
    };
    const authorization = `Bearer ${server.key}`;
    const chat = { model, messages, max_tokens: 1 };
    const models = await call('/v1/models', null, { authorization });
    const answer = await call('/v1/chat/completions', chat, { authorization });
    for (const { headers } of [models, answer]) {
      assert.equal(headers['strict-transport-security'], 'max-age=31536000');
    }
    const token = server.setupLink?.split('/').at(-1);
    const joined = await call('/dashboard/api/join', { token, email: 'a@b.c', password }, {});
    const cookie = joined.headers['set-cookie']?.[0] ?? '';
    assert.match(
      cookie,
      /^__Host-millrace_session=\w{43}; Path=\/; .*HttpOnly; Secure; SameSite=S/,
    );
    const [pair = ''] = cookie.split(';');
    assert.equal((await call('/dashboard/api/me', null, { cookie: pair })).statusCode, 200);
    // Another host of the same domain could have set a cookie without the prefix.
    const unbound = pair.replace('__Host-', '');
    assert.equal((await call('/dashboard/api/me', null, { cookie: unbound })).statusCode, 401);
  });

  test('the CLI signs in to a server whose cookie is bound to its host', async () => {
    const port = String(await findFreePort());
    const server = await serveMillrace(['--port', port, '--public-url', 'https://mill.example']);
    const token = readFirstSecret(server.stdout(), 'Set-up link').split('/').at(-1);
    // The public URL is that of a proxy. The CLI reaches the server without it.
    const link = `http://127.0.0.1:${port}/#/join/${token}`;
    const env = { HOME: makeFolder() };
    const login = ['login', '--link', link, '--email', 'me@example.com'];
    const { code, stderr } = await runMillrace(login, { env, input: `${password}\n` });
    assert.equal(code, 0, stderr);
    assert.match((await runMillrace(['whoami'], { env })).stdout, /me@example\.com/);
  });
});

describe('the Host header', () => {
  test('of a server on loopback must be one of its names', async () => {
    const server = await startTestServer({
      config: { server: { allowed_hosts: ['mill.example.com'] } },
    });
    const { port } = new URL(server.url);
    for (const name of ['localhost', 'LOCALHOST', 'a.localhost', '127.0.0.1', '127.9.9.9', '[::1]'])
      assert.deepEqual(await ask(server, '/v1/models', `${name}:${port}`), [200, undefined], name);
    assert.deepEqual(await ask(server, '/v1/models', 'mill.example.com'), [200, undefined]);
    for (const name of ['evil.example', 'localhost.evil.example', 'mill-example.com', '10.0.0.1'])
      assert.deepEqual(await ask(server, '/v1/models', name), [421, 'misdirected_request'], name);
    assert.deepEqual(await ask(server, '/api/v1/regions', 'evil.example'), [
      421,
      'global/invalid-parameters',
    ]);
    assert.deepEqual(await ask(server, '/dashboard/api/me', 'evil.example'), [421, 'misdirected']);
    assert.deepEqual(await ask(server, '/', 'evil.example'), [421, 'misdirected']);
  });

  test('of a server that others reach may be any, unless names are listed', async () => {
    const open = await startTestServer({ config: { server: { host: '0.0.0.0' } } });
    assert.deepEqual(await ask(open, '/v1/models', 'any.example'), [200, undefined]);
    const allowed_hosts = ['mill.example.com'];
    const listed = await startTestServer({
      config: { server: { host: '0.0.0.0', allowed_hosts } },
    });
    assert.deepEqual(await ask(listed, '/v1/models', 'any.example'), [421, 'misdirected_request']);
    const any = await startTestServer({ config: { server: { allowed_hosts: ['*'] } } });
    assert.deepEqual(await ask(any, '/v1/models', 'any.example'), [200, undefined]);
  });

  test('is required by HTTP/1.1, and its absence is an error in the API’s format', async () => {
    const server = await startTestServer();
    const without = (version: string, path: string) =>
      talk(
        server,
        `GET ${path} HTTP/${version}\r\nAuthorization: Bearer ${server.key}\r\nConnection: close\r\n\r\n`,
      );
    const missing = await without('1.1', '/v1/models');
    assert.match(missing, /^HTTP\/1\.1 400 .*"code":"invalid_request"/s);
    assert.match(await without('1.1', '/api/v1/regions'), /^HTTP\/1\.1 400 .*"code":"global\//s);
    assert.match(await without('1.0', '/v1/models'), /^HTTP\/1\.1 200 /);
  });

  test('is accepted once', async () => {
    const server = await startTestServer();
    for (const [version, second] of [
      ['1.1', 'localhost'],
      ['1.0', 'other.example'],
    ]) {
      const answer = await talk(
        server,
        `GET /v1/models HTTP/${version}\r\nHost: localhost\r\nAuthorization: Bearer ${server.key}\r\nhOsT: ${second}\r\nConnection: close\r\n\r\n`,
      );
      assert.match(answer, /^HTTP\/1\.1 400 .*more than one Host.*"code":"invalid_request"/s);
    }
  });
});

test('an unknown Expect header is refused in the API’s format', async () => {
  const server = await startTestServer();
  const expecting = (path: string) =>
    talk(
      server,
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nExpect: more\r\nConnection: close\r\n\r\n`,
    );
  const code = /^HTTP\/1\.1 417 .*"code":"expectation_failed"/s;
  assert.match(await expecting('/v1/models'), code);
  assert.match(await expecting('/dashboard/api/keys'), code);
});

describe('pages of other sites', () => {
  const preflight = (server: TestServer, origin: string) =>
    fetch(`${server.url}/v1/chat/completions`, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type,x-stainless-os',
      },
    });
  const page = 'https://app.example.com';

  test('may not call the API by default', async () => {
    const server = await startTestServer();
    const asked = await preflight(server, page);
    assert.equal(asked.status, 405);
    const answer = await server.fetch('/v1/models', { headers: { origin: page } });
    for (const { headers } of [asked, answer]) {
      assert.equal(headers.get('access-control-allow-origin'), null);
    }
  });

  test('that are listed may call it: preflight, responses, streams and errors', async (context) => {
    const inference = { allowed_origins: [page, 'http://localhost:3000'] };
    const { server } = await startGateway(context, { upstreams: [{}], inference });
    const asked = await preflight(server, page);
    assert.equal(asked.status, 204);
    assert.equal(asked.headers.get('access-control-allow-methods'), 'GET, HEAD, POST');
    assert.match(asked.headers.get('access-control-allow-headers') ?? '', /authorization,.*x-st/);
    const origin = { headers: { origin: page } };
    const chat = '/v1/chat/completions';
    const responses = [
      asked,
      await server.fetch('/v1/models', origin),
      await server.fetch(chat, { json: { model, messages }, ...origin }),
      await server.fetch(chat, { json: { model, messages, stream: true }, ...origin }),
      await server.fetch(chat, { json: { model: 'none', messages }, ...origin }),
      await fetch(`${server.url}/v1/models`, origin),
      await server.fetch('/v1/nothing', origin),
    ];
    for (const { headers, body } of responses) {
      assert.equal(headers.get('access-control-allow-origin'), page);
      assert.equal(headers.get('vary'), 'origin');
      assert.equal(headers.get('access-control-allow-credentials'), null);
      await body?.cancel();
    }
    const other = await preflight(server, 'https://evil.example');
    assert.deepEqual(
      [other.status, other.headers.get('access-control-allow-origin'), other.headers.get('vary')],
      [405, null, 'origin'],
    );
    const cloud = await server.fetch('/api/v1/regions', origin);
    assert.equal(cloud.headers.get('access-control-allow-origin'), null);
  });

  test('may all call it if the list is *', async () => {
    const server = await startTestServer({ config: { inference: { allowed_origins: ['*'] } } });
    const asked = await preflight(server, 'null');
    assert.deepEqual([asked.status, asked.headers.get('access-control-allow-origin')], [204, '*']);
    const plain = await server.fetch('/v1/models');
    assert.equal(plain.headers.get('access-control-allow-origin'), null);
  });
});

describe('/metrics', () => {
  const read = async ({ url }: TestServer, key?: string) => {
    const headers = key === undefined ? {} : { authorization: `Bearer ${key}` };
    return (await fetch(`${url}/metrics`, { headers })).status;
  };

  test('can require a key of its own', async () => {
    const metrics_key = 'scrape-0123456789';
    const server = await startTestServer({ config: { server: { metrics_key } } });
    assert.deepEqual(
      [await read(server), await read(server, server.key), await read(server, metrics_key)],
      [401, 401, 200],
    );
    for (const authorization of ['', `Bearer ${server.key}`]) {
      const refused = await fetch(`${server.url}/metrics`, { headers: { authorization } });
      assert.match(await refused.text(), /Send the value of server\.metrics_key/);
    }
  });

  test('can be limited to addresses and networks', async () => {
    const start = (...metrics_addresses: string[]) =>
      startTestServer({ config: { server: { metrics_addresses } } });
    assert.equal(await read(await start('10.0.0.0/8', '::1')), 403);
    assert.equal(await read(await start('10.0.0.0/8', '127.0.0.0/8')), 200);
    assert.equal(await read(await start('127.0.0.1')), 200);
  });

  test('settings that are not addresses are refused', async () => {
    const file = join(makeFolder(), 'millrace.yaml');
    for (const entry of ['10.0.0.0/33', 'localhost', '10.0.0.0/8/8']) {
      writeFileSync(file, `server:\n  metrics_addresses: ["${entry}"]\n`);
      const { code, stderr } = await runMillrace(['config', 'check', file]);
      assert.equal(code, 1);
      assert.match(stderr, /:2: server\.metrics_addresses must be addresses or networks/);
    }
  });
});

describe('the process', () => {
  test('does not open a debugger on SIGUSR1', async () => {
    const server = await serveMillrace();
    server.child.kill('SIGUSR1');
    assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
    server.child.kill('SIGTERM');
    const { code, stderr } = await server.ended;
    assert.equal(code, 0, stderr);
    assert.doesNotMatch(stderr, /Debugger listening/);
  });
});
