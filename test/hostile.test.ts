// Ten thousand hostile requests over every route: no 5xx, always JSON, and the process goes on.

import assert from 'node:assert';
import { connect } from 'node:net';
import { before, describe, test } from 'node:test';
import fc from 'fast-check';
import { startTestServer, type TestServer } from './support/server.ts';

const routes: [string, string][] = [
  ['GET', '/v1/models'],
  ['GET', '/v1/models/x'],
  ['POST', '/v1/chat/completions'],
  ['POST', '/v1/completions'],
  ['GET', '/api/v1/ssh-keys'],
  ['POST', '/api/v1/ssh-keys'],
  ['DELETE', '/api/v1/ssh-keys/x'],
  ['GET', '/api/v1/instances'],
  ['GET', '/api/v1/instances/x'],
  ['POST', '/api/v1/instances/x'],
  ['POST', '/api/v1/instance-operations/launch'],
  ['POST', '/api/v1/instance-operations/restart'],
  ['POST', '/api/v1/instance-operations/terminate'],
  ['POST', '/api/v1/instance-operations/power-cycle'],
  ['GET', '/api/v1/instance-types'],
  ['GET', '/api/v1/file-systems'],
  ['POST', '/api/v1/filesystems'],
  ['DELETE', '/api/v1/filesystems/x'],
  ['GET', '/api/v1/images'],
  ['GET', '/api/v1/regions'],
  ['PUT', '/api/v1/firewall-rules'],
  ['POST', '/api/v1/firewall-rulesets'],
  ['PATCH', '/api/v1/firewall-rulesets/global'],
  ['GET', '/api/v1/audit-events'],
  ['POST', '/dashboard/api/login'],
  ['POST', '/dashboard/api/join'],
  ['POST', '/dashboard/api/invitations/look'],
  ['POST', '/dashboard/api/api-keys'],
  ['DELETE', '/dashboard/api/api-keys/x'],
  ['PATCH', '/dashboard/api/members/x'],
  ['POST', '/dashboard/api/password'],
  ['GET', '/dashboard/api/audit-events'],
];

/** Real member names with wrong values get deeper than noise does. */
const names = [
  'model',
  'messages',
  'prompt',
  'role',
  'content',
  'name',
  'public_key',
  'stream',
  'stop',
  'tools',
  'tool_choice',
  'response_format',
  'n',
  'temperature',
  'logit_bias',
  'email',
  'password',
  'token',
  'label',
  'scopes',
  'expires_at',
  'region_name',
  'instance_type_name',
  'ssh_key_names',
  'instance_ids',
  'user_data',
  'tags',
  'image',
  'rules',
  'data',
  'region',
  '__proto__',
  'constructor',
  'toString',
];

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom(
    'hermes3-8b',
    'user',
    '',
    '\u0000',
    '../../etc/passwd',
    '0'.repeat(32),
    '\ud800',
    "' or 1=1 --",
  ),
  fc.integer({ min: 1000, max: 20_000 }).map((length) => 'a'.repeat(length)),
);
const leaf = fc.oneof(
  text,
  fc.constantFrom(null, true, false, 0, -1, 1.5, 1e308, Number.MAX_SAFE_INTEGER, [], {}),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { weight: 4, arbitrary: leaf },
    { weight: 1, arbitrary: fc.array(tie('value'), { maxLength: 4 }) },
    {
      weight: 2,
      arbitrary: fc.dictionary(fc.oneof(fc.constantFrom(...names), text), tie('value'), {
        maxKeys: 5,
      }),
    },
  ),
}));
const json = fc.dictionary(fc.constantFrom(...names), value as fc.Arbitrary<unknown>, {
  maxKeys: 8,
});
const body = fc.oneof(
  { weight: 6, arbitrary: json.map((object) => Buffer.from(JSON.stringify(object))) },
  {
    weight: 1,
    arbitrary: (value as fc.Arbitrary<unknown>).map((any) => Buffer.from(JSON.stringify(any))),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)) },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 100, max: 50_000 }).map((depth) => Buffer.from('['.repeat(depth))),
  },
);
const segment = fc.oneof(
  fc.constant('x'),
  text.map((raw) => encodeURIComponent(raw.toWellFormed()).slice(0, 600)),
  fc.constantFrom('%', '%zz', '..', '%00', '%2e%2e%2f', '0'.repeat(32), 'a'.repeat(2000)),
);
const request = fc.record({
  route: fc.constantFrom(...routes),
  method: fc.option(fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'), {
    freq: 6,
    nil: null,
  }),
  segment,
  query: fc.option(
    fc.constantFrom('limit=-1', 'limit=x&limit=y', '__proto__[x]=1', 'before=%00', 'start=x'),
    { nil: null },
  ),
  body,
  type: fc.constantFrom(
    'application/json',
    'text/plain',
    'application/json; charset=utf-16',
    'x',
    '',
  ),
  auth: fc.constantFrom(
    'key',
    'key',
    'key',
    'session',
    'session',
    'none',
    'Bearer',
    'Basic ::::',
    'Digest x',
    `Bearer ${'k'.repeat(3000)}`,
  ),
});

describe('hostile input', () => {
  let server: TestServer;
  let cookie: string;
  before(async () => {
    server = await startTestServer({ config: { accounts: { login_attempts: 10_000 } } });
    ({ cookie } = await server.join());
  });

  test('ten thousand generated requests give no 5xx, and JSON always', {
    timeout: 300_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 20, maxLength: 20 }), async (batch) => {
        await Promise.all(batch.map(attack));
      }),
      { numRuns: 500, seed: 20_261_115, endOnFailure: true },
    );
    assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
    assert.equal((await server.fetch('/v1/models')).status, 200);
  });

  async function attack(sent: typeof request extends fc.Arbitrary<infer T> ? T : never) {
    const [usual, path] = sent.route;
    const method = sent.method ?? usual;
    const url = path.replace(/x$/, sent.segment) + (sent.query === null ? '' : `?${sent.query}`);
    const hasBody = method !== 'GET' && method !== 'HEAD';
    const response = await fetch(server.url + url, {
      method,
      headers: {
        ...(sent.type === '' ? {} : { 'content-type': sent.type }),
        ...credentials(sent.auth),
      },
      body: hasBody ? sent.body : null,
    });
    const answer = await response.text();
    const what = `${method} ${url} → ${response.status} ${answer.slice(0, 200)}`;
    // The tiny model really answers what happens to be valid; an overload is an answer, a fault is not.
    assert(response.status < 500 || response.status === 503, what);
    if (method !== 'HEAD' && !response.headers.get('content-type')?.includes('event-stream')) {
      JSON.parse(answer);
      assert(!answer.includes('node_modules') && !answer.includes('at async'), what);
    }
  }

  function credentials(auth: string): Record<string, string> {
    if (auth === 'key') return { authorization: `Bearer ${server.key}` };
    if (auth === 'session') return { cookie };
    return auth === 'none' ? {} : { authorization: auth };
  }

  const rawRequests: [string, string][] = [
    [
      'two content lengths',
      'POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx',
    ],
    [
      'both framings',
      'POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['no HTTP at all', 'hello there\r\n\r\n'],
    ['endless headers', `GET /v1/models HTTP/1.1\r\nhost: x\r\n${'x-a: b\r\n'.repeat(5000)}\r\n`],
    [
      'a header of 100 kB',
      `GET /api/v1/instances HTTP/1.1\r\nhost: x\r\nx-a: ${'b'.repeat(100_000)}\r\n\r\n`,
    ],
    [
      'duplicate authorization',
      'GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer a\r\nauthorization: Bearer b\r\nconnection: close\r\n\r\n',
    ],
    ['a zero byte in the path', 'GET /v1/mod\u0000els HTTP/1.1\r\nhost: x\r\n\r\n'],
  ];
  rawRequests.push(
    [
      'an expectation nobody knows',
      'GET /v1/models HTTP/1.1\r\nhost: x\r\nexpect: tea\r\nconnection: close\r\n\r\n',
    ],
    ['a tunnel', 'CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n'],
    ['no host', 'GET /v1/models HTTP/1.1\r\nconnection: close\r\n\r\n'],
    [
      'a method of another protocol',
      'QUERY /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n',
    ],
  );
  for (const [name, bytes] of rawRequests) {
    test(`${name}: a 4xx in JSON, and the connection ends`, async () => {
      const answer = await sendRaw(bytes);
      assert.match(answer, /^HTTP\/1\.1 4\d\d /, answer.slice(0, 200));
      const [, text = ''] = answer.split('\r\n\r\n');
      assert(JSON.parse(text).error.message);
    });
  }

  function sendRaw(bytes: string): Promise<string> {
    const { port, hostname } = new URL(server.url);
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => socket.write(bytes));
      let answer = '';
      socket.setTimeout(10_000, () => socket.destroy(new Error('no answer in 10 s')));
      socket.on('data', (chunk) => {
        answer += chunk.toString('latin1');
      });
      socket.on('error', (error) => (answer === '' ? reject(error) : resolve(answer)));
      socket.on('close', () => resolve(answer));
    });
  }
});
