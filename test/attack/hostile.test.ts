// Thousands of generated requests to every route, on each database: no 5xx, always JSON, and the process stays up.

import assert from 'node:assert';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { databases } from '#test/support/databases.ts';
import { assertErrorFormat } from '#test/support/hostile/error-formats.ts';
import { createWorld, owner, repo, type World } from '#test/support/hostile/examples.ts';
import { type HostileRequest, hostileRequest, mutate } from '#test/support/hostile/input.ts';
import { collectRoutes } from '#test/support/hostile/routes.ts';
import { startHub } from '#test/support/hub.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

/** Whether a path belongs to an API. The other paths are pages and files, which are JSON only if they fail. */
const isApi = (path: string) => /^\/(v1|api\/v1|dashboard\/api)\/(?!docs$)/.test(path);
/** Whether a route may respond with 503, which says that the model is overloaded. */
const mayOverload = (route: string) =>
  /^POST (\/v1)?\/((chat\/)?completions|embeddings|rerank|(de)?tokenize)$/.test(route);

/** Operations of the contract that this cloud refuses whatever the body says. */
const notOffered: Record<string, number[]> = {
  'POST /api/v1/tickets': [403],
  'POST /api/v1/fabric': [400],
  // The built-in model neither embeds nor ranks.
  'POST /v1/embeddings': [400],
  'POST /v1/rerank': [400],
  'POST /rerank': [400],
  'POST /api/embed': [400],
  // Files are sent as forms.
  'POST /v1/files': [415],
  // Only people may change deployments.
  'POST /api/v1/deployments': [403],
  'POST /api/v1/deployments/:name': [403],
  'POST /api/v1/deployments/:name/rollback': [403],
  'POST /api/v1/deployments/:name/stop': [403],
  'POST /api/v1/deployments/:name/start': [403],
  // Only servers may call each other, and on SQLite there is one.
  'POST /peer/v1/deployments/:id/demand': [401, 404],
  'POST /peer/v1/deployments/:id/forgive': [401, 404],
  'POST /peer/v1/deployments/:id/replicas/:replica/v1/chat/completions': [401, 404],
  'POST /peer/v1/deployments/:id/replicas/:replica/v1/completions': [401, 404],
  'POST /peer/v1/deployments/:id/replicas/:replica/v1/embeddings': [401, 404],
  'POST /peer/v1/deployments/:id/replicas/:replica/v1/rerank': [401, 404],
  'POST /peer/v1/deployments/:id/replicas/:replica/tokenize': [401, 404],
  'POST /peer/v1/deployments/:id/replicas/:replica/detokenize': [401, 404],
  'POST /peer/v1/deployments/:id/replicas/:replica/apply-template': [401, 404],
  // The response is not a background one.
  'POST /v1/responses/:response_id/cancel': [400, 404],
};

/** Batches of twenty requests. On PostgreSQL only the queries differ. */
const batches = { sqlite: 250, postgres: 100 };

for (const database of databases) {
  describe(`hostile input, on ${database}`, () => {
    let server: TestServer;
    let world: World;
    let session: SessionFetch;
    /** A person whose session and password the requests may end. */
    let victim: SessionFetch;
    let victims = 0;
    let routes: string[];
    const agent = new Agent({ keepAlive: true, maxSockets: 50 });
    before(async () => {
      const hub = await startHub();
      hub.add(repo, { 'tiny-Q4_K_M.gguf': Buffer.from('GGUF') });
      routes = await collectRoutes(async () => {
        server = await startTestServer({
          database,
          config: {
            accounts: { login_attempts: 10_000 },
            models: { hub_url: hub.url, disk_reserve_gib: 0 },
          },
        });
      });
      session = await server.join(owner);
      victim = await invite();
      world = await createWorld(server, session);
      const page = { headers: { accept: 'text/html' } };
      await until('the pages are built', async () => {
        const pages = ['/', '/docs', '/help/'].map((path) => fetch(`${server.url}${path}`, page));
        return (await Promise.all(pages)).every(({ ok }) => ok);
      });
    });
    after(() => agent.destroy());

    test('every route with a request body has an example, and every example a route', () => {
      const taking = routes.filter((route) => /^(POST|PUT|PATCH) /.test(route));
      const isOffered = (route: string) => database === 'postgres' || !route.includes(' /peer/');
      assert.deepEqual(Object.keys(world.examples).filter(isOffered).sort(), taking.sort());
      for (const part of ['/healthz', '/v1/models', '/api/v1/images', '/dashboard/api/me', '/']) {
        assert(routes.includes(`GET ${part}`));
      }
    });

    test('no schema refuses an example', async () => {
      for (const [route, example] of Object.entries(world.examples)) {
        const [method = '', path = ''] = route.split(' ');
        const { status, answer } = await send(
          method,
          path.replaceAll(/:(ticket_|attachment_|response_)?id/g, world.ids[3] ?? ''),
          { 'content-type': 'application/json', ...credentials('right', path) },
          Buffer.from(JSON.stringify(example)),
        );
        // An earlier example may have changed what exists and fits.
        const expected = notOffered[route] ?? [200, 202, 404, 409];
        assert(expected.includes(status), `${route} → ${status} ${answer}`);
      }
    });

    test('thousands of generated requests get no 5xx, and always JSON', {
      timeout: 300_000,
    }, async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(hostileRequest, { minLength: 20, maxLength: 20 }), attackAtOnce),
        { numRuns: propertyRuns(batches[database]), seed: propertySeed, endOnFailure: true },
      );
      assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
      assert.equal((await server.fetch('/v1/models')).status, 200);
    });

    async function attackAtOnce(batch: HostileRequest[]): Promise<void> {
      await Promise.all(batch.map(attack));
      if (!(await victim('/dashboard/api/me')).ok) victim = await invite();
    }

    async function invite(): Promise<SessionFetch> {
      const invitation = await session('/dashboard/api/invitations', { json: { role: 'member' } });
      const { link } = (await invitation.json()) as { link: string };
      victims += 1;
      return server.joinBy(link, `victim-${victims}@example.com`);
    }

    async function attack(sent: HostileRequest): Promise<void> {
      const route = routes[sent.route % routes.length] as string;
      const [usual = '', pattern = ''] = route.split(' ');
      const method = sent.method ?? usual;
      const { segment } = sent;
      const id = typeof segment === 'number' ? world.ids[segment % world.ids.length] : segment;
      const path = pattern.replace(/:\w+|\*/, id ?? '');
      const url = sent.query === null ? path : `${path}?${sent.query}`;
      const { status, type, answer } = await send(
        method,
        url,
        {
          ...(sent.type === '' ? {} : { 'content-type': sent.type }),
          ...credentials(sent.credentials, pattern),
        },
        bodyOf(route, sent),
      );
      const what = `${method} ${url} → ${status} ${answer.slice(0, 200)}`;
      assert(status < 500 || (status === 503 && mayOverload(`${method} ${pattern}`)), what);
      assert(!answer.includes('node_modules') && !answer.includes('at async'), what);
      if (method === 'HEAD' || /event-stream|text\/csv/.test(type)) return;
      if (isApi(pattern) || status >= 400) assert.doesNotThrow(() => JSON.parse(answer), what);
      if (status >= 400) assertErrorFormat(path, answer);
    }

    function bodyOf(route: string, { changes, noise }: HostileRequest): Buffer {
      const example = world.examples[route];
      if (changes === null || example === undefined) return noise;
      const body = mutate(example, changes);
      // The model generates an answer to every valid request, so keep it short.
      const length = body.max_tokens ?? null;
      const isLong = length === null || (typeof length === 'number' && length > 4);
      if (route.includes(' /v1/') && isLong) body.max_tokens = 2;
      return Buffer.from(JSON.stringify(body));
    }

    function credentials(kind: string, path: string): Record<string, string> {
      if (kind === 'none') return {};
      const isSession = kind === 'session' || (kind === 'right' && path.startsWith('/dashboard/'));
      const losesIt = /\/(logout|password)$/.test(path);
      if (isSession) return { cookie: (losesIt ? victim : session).cookie };
      const isKey = kind === 'key' || kind === 'right';
      return { authorization: isKey ? `Bearer ${server.key}` : kind };
    }

    /** Sends with node:http, because fetch refuses some methods. */
    function send(method: string, path: string, headers: Record<string, string>, body: Buffer) {
      const hasBody = method !== 'GET' && method !== 'HEAD';
      // Node's client gives the bodies of DELETE, OPTIONS and TRACE no length. The server would read them as the
      // start of another request, and the next request on the connection would get that one's response.
      const length = hasBody ? { 'content-length': String(body.length) } : {};
      return new Promise<{ status: number; type: string; answer: string }>((resolve, reject) => {
        const { hostname, port } = new URL(server.url);
        const call = request(
          { hostname, port, method, path, headers: { ...headers, ...length }, agent },
          (response) => {
            const { statusCode: status = 0, headers: got } = response;
            const type = got['content-type'] ?? '';
            const finish = (answer: string) => resolve({ status, type, answer });
            if (path.includes('/events') && type.includes('event-stream')) {
              // The event stream never ends.
              response.destroy();
              return finish('');
            }
            const chunks: Buffer[] = [];
            response.on('data', (chunk: Buffer) => chunks.push(chunk));
            response.once('end', () => finish(Buffer.concat(chunks).toString()));
            response.once('error', reject);
          },
        );
        call.once('error', (error) => reject(new Error(`${method} ${path}`, { cause: error })));
        call.setTimeout(120_000, () => call.destroy(new Error('no response in 120 s')));
        call.end(hasBody ? body : undefined);
      });
    }
  });
}

describe('hostile bytes', () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer();
  });

  const rawRequests: [string, string][] = [
    [
      'two content lengths',
      'POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx',
    ],
    [
      'both framings',
      'POST /v1/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['bytes that are not HTTP', 'hello there\r\n\r\n'],
    [
      'endless headers',
      `GET /v1/models HTTP/1.1\r\nhost: localhost\r\n${'x-a: b\r\n'.repeat(5000)}\r\n`,
    ],
    [
      'a header of 100 kB',
      `GET /api/v1/instances HTTP/1.1\r\nhost: localhost\r\nx-a: ${'b'.repeat(100_000)}\r\n\r\n`,
    ],
    [
      'duplicate authorization',
      'GET /v1/models HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer a\r\nauthorization: Bearer b\r\nconnection: close\r\n\r\n',
    ],
    ['a zero byte in the path', 'GET /v1/mod\u0000els HTTP/1.1\r\nhost: localhost\r\n\r\n'],
  ];
  rawRequests.push(
    [
      'an unknown expectation',
      'GET /v1/models HTTP/1.1\r\nhost: localhost\r\nexpect: tea\r\nconnection: close\r\n\r\n',
    ],
    ['a tunnel', 'CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\n\r\n'],
    ['no host', 'GET /v1/models HTTP/1.1\r\nconnection: close\r\n\r\n'],
    [
      'a method of another protocol',
      'QUERY /v1/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n',
    ],
  );
  for (const [name, bytes] of rawRequests) {
    test(`${name}: the response is a 4xx in JSON, and the connection is closed`, async () => {
      const answer = await sendRaw(bytes);
      assert.match(answer, /^HTTP\/1\.1 4\d\d /, answer.slice(0, 200));
      const [, text = ''] = answer.split('\r\n\r\n');
      assert(JSON.parse(text).error.message);
    });
  }

  test('the error for bytes that are not HTTP follows the response in progress', async () => {
    const body = JSON.stringify({
      ...{ model: 'llama3.1-8b-instruct', prompt: 'Once', stream: true },
      ...{ max_tokens: 200, ignore_eos: true },
    });
    const answer = await sendRaw(
      `POST /v1/completions HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${server.key}\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      'hello there\r\n\r\n',
    );
    assert.match(answer, /^HTTP\/1\.1 200 /);
    assert.equal(answer.split('HTTP/1.1').length - 1, 2, answer.slice(-500));
    assert.match(answer, /data: \[DONE\]\n\n\r\n0\r\n\r\nHTTP\/1\.1 400 /);
  });

  /** Sends `bytes`, and `more` once the response has begun. */
  function sendRaw(bytes: string, more = ''): Promise<string> {
    const { port, hostname } = new URL(server.url);
    return new Promise((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => socket.write(bytes));
      let answer = '';
      socket.setTimeout(120_000, () => socket.destroy(new Error('no response in 120 s')));
      socket.on('data', (chunk) => {
        if (answer === '' && more !== '') socket.write(more);
        answer += chunk.toString('latin1');
      });
      socket.on('error', (error) => (answer === '' ? reject(error) : resolve(answer)));
      socket.on('close', () => resolve(answer));
    });
  }
});
