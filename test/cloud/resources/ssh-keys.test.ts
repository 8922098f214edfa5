// SSH keys of the cloud API, and what every route of it promises: JSON whatever the content type, its own
// error dialect, and the seed's rate limits.

import assert from 'node:assert';
import { createHook } from 'node:async_hooks';
import { generateKeyPairSync } from 'node:crypto';
import { describe, test } from 'node:test';
import ssh from 'ssh2';
import { createHandClock } from '#test/support/clock.ts';
import { startCloud } from '#test/support/cloud/cloud.ts';
import { bothDatabases } from '#test/support/databases.ts';
import { createRandom } from '#test/support/random.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const path = '/api/v1/ssh-keys';
const ed25519 =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUFkDQuBDRFdZxRcVz4BhnMJE4wT7TRnl/mBQbqQHxR me@laptop';

interface CloudError {
  error: { code: string; message: string; suggestion?: string };
}

async function add(server: TestServer, body: object) {
  const response = await server.fetch(path, { json: body });
  return { status: response.status, body: (await response.json()) as Record<string, never> };
}

function makePublicKeys(): Record<string, string> {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey;
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey;
  const ed = generateKeyPairSync('ed25519').publicKey;
  const [, blob = ''] = ed25519.split(' ');
  const rfc4716 = [
    '---- BEGIN SSH2 PUBLIC KEY ----',
    'Comment: "me at the lab"',
    ...(blob.match(/.{1,40}/g) ?? []),
    '---- END SSH2 PUBLIC KEY ----',
  ];
  return {
    openssh: ed25519,
    rfc4716: rfc4716.join('\n'),
    'pkcs8 rsa': rsa.export({ type: 'spki', format: 'pem' }),
    'pem rsa': rsa.export({ type: 'pkcs1', format: 'pem' }),
    'pkcs8 ec': ec.export({ type: 'spki', format: 'pem' }),
    'pkcs8 ed25519': ed.export({ type: 'spki', format: 'pem' }),
  };
}

for (const database of bothDatabases) {
  describe(`ssh keys on ${database}`, () => {
    test('public keys in every format are accepted and returned as one OpenSSH line', async () => {
      const server = await startTestServer({ database });
      for (const [name, public_key] of Object.entries(makePublicKeys())) {
        const { status, body } = await add(server, { name, public_key });
        assert.equal(status, 200, `${name}: ${JSON.stringify(body)}`);
        const { data } = body as unknown as {
          data: { id: string; name: string; public_key: string };
        };
        assert.deepEqual(Object.keys(data), ['id', 'name', 'public_key']);
        assert.match(data.id, /^[0-9a-f]{32}$/);
        assert.match(
          data.public_key,
          /^(ssh-rsa|ssh-ed25519|ecdsa-sha2-nistp256) AAAA[A-Za-z0-9+/]+=*( .*)?$/,
        );
      }
      const list = (await (await server.fetch(path)).json()) as { data: { name: string }[] };
      assert.equal(list.data.length, 6);
    });

    test('a generated private key is PEM, matches its public key, and is shown once', async () => {
      const server = await startTestServer({ database });
      const { body } = await add(server, { name: 'made' });
      const { data } = body as unknown as { data: { public_key: string; private_key: string } };
      assert.match(data.private_key, /^-----BEGIN RSA PRIVATE KEY-----\n/);
      const parsed = ssh.utils.parseKey(data.private_key);
      assert(!(parsed instanceof Error) && !Array.isArray(parsed));
      assert.equal(parsed.getPublicSSH().toString('base64'), data.public_key.split(' ')[1]);
      assert(!(await (await server.fetch(path)).text()).includes('PRIVATE'));
    });

    test('names are unique, keys need not be', async () => {
      const server = await startTestServer({ database });
      assert.equal((await add(server, { name: 'a', public_key: ed25519 })).status, 200);
      const twice = await add(server, { name: 'a', public_key: ed25519 });
      const { error } = twice.body as unknown as CloudError;
      assert.deepEqual([twice.status, error.code], [400, 'global/invalid-parameters']);
      assert(error.message.includes('name must be unique'), 'clients look for these words');
      assert.equal((await add(server, { name: 'b', public_key: ed25519 })).status, 200);
    });

    test('a deleted key is gone; an unknown id gets 404 and an invalid one 400', async () => {
      const server = await startTestServer({ database });
      const { body } = await add(server, { name: 'a', public_key: ed25519 });
      const { id } = (body as unknown as { data: { id: string } }).data;
      const remove = (which: string) => server.fetch(`${path}/${which}`, { method: 'DELETE' });
      const gone = await remove(id);
      assert.deepEqual([gone.status, await gone.json()], [200, { data: {} }]);
      const unknown = await remove(id);
      assert.equal(unknown.status, 404);
      assert.equal(((await unknown.json()) as CloudError).error.code, 'global/not-found');
      const wrong = await remove('42');
      assert.equal(wrong.status, 400);
      const { error } = (await wrong.json()) as CloudError;
      assert.equal(
        error.message,
        "Error in request path at 'id': Input should be a valid UUID, invalid length: expected length 32 for simple format, found 2",
      );
    });

    test('a key that a machine was launched with is deleted only with what the machine does with it', async () => {
      const cloud = await startCloud(database);
      const remove = async (id: string, query = '') =>
        (await cloud.call('DELETE', `/ssh-keys/${id}${query}`)).status;
      for (const [machines, refused] of [
        ['keep', false],
        ['refuse', true],
      ] as const) {
        const name = `key-${machines}`;
        const keyId = await cloud.addKey(name);
        const id = await cloud.launchActive({ ssh_key_names: [name] });
        const refusedBy = () => (cloud.driver.find(id)?.spec.refusedKeys ?? []).length > 0;
        assert.equal(await remove(keyId), 400);
        assert.equal(await remove(keyId, '?machines=perhaps'), 400);
        assert.equal(await remove(keyId, `?machines=${machines}`), 200);
        await cloud.settle();
        assert.equal(refusedBy(), refused);
        // Added again, it is accepted again.
        await cloud.addKey(name);
        await cloud.settle();
        assert.equal(refusedBy(), false);
      }
    });

    test('the limit of keys holds under 50 concurrent requests', async () => {
      const config = { cloud: { ssh_keys_per_account: 20 } };
      const server = await startTestServer({ database, config });
      const answers = await Promise.all(
        Array.from({ length: 50 }, (_, n) => add(server, { name: `k${n}`, public_key: ed25519 })),
      );
      assert.equal(answers.filter(({ status }) => status === 200).length, 20);
      const refused = answers.filter(({ status }) => status === 400);
      assert.equal(refused.length, 30);
      for (const { body } of refused) {
        assert.equal((body as unknown as CloudError).error.code, 'global/quota-exceeded');
      }
      const list = (await (await server.fetch(path)).json()) as { data: unknown[] };
      assert.equal(list.data.length, 20);
    });
  });
}

describe('the cloud surface', () => {
  test('the default limit is 1,024 keys', async () => {
    const { parse } = await import('yaml');
    const { renderExample } = await import('#config/example.ts');
    assert.equal(parse(renderExample()).cloud.ssh_keys_per_account, 1024);
  });

  test('a private key pasted by mistake is refused and appears in no response', async () => {
    const server = await startTestServer();
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    for (const type of ['pkcs1', 'pkcs8'] as const) {
      const pem = String(privateKey.export({ type, format: 'pem' }));
      const { status, body } = await add(server, { name: 'oops', public_key: pem });
      assert.equal(status, 400);
      const text = JSON.stringify(body);
      assert(text.includes('private key'));
      assert(!text.includes(pem.split('\n')[1] as string));
    }
  });

  test('no key is generated for a name that is taken', async (context) => {
    const server = await startTestServer();
    await add(server, { name: 'a', public_key: ed25519 });
    let generated = 0;
    const hook = createHook({
      init(_id, type) {
        if (type === 'KEYPAIRGENREQUEST') generated++;
      },
    }).enable();
    context.after(() => hook.disable());
    const { status } = await add(server, { name: 'a' });
    assert.deepEqual([status, generated], [400, 0]);
    await add(server, { name: 'b' });
    assert.equal(generated, 1);
  });

  test('an invalid key is refused with the reason', async () => {
    const server = await startTestServer();
    const cases: [string, RegExp][] = [
      ['hello', /not a public key/],
      ['ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIHUFkDQuBDRFdZxRcVz4BhnMJE4wT7TRnl/mBQbqQHxR', /differs/],
      ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUF', /truncated/],
      [`${ed25519}\n${ed25519}`, /one line/],
      ['-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----', /does not contain a readable/],
      ['ssh-dss AAAAB3NzaC1kc3MAAAAEAAAAAQ==', /type/],
    ];
    for (const [public_key, words] of cases) {
      const { status, body } = await add(server, { name: 'x', public_key });
      const { error } = body as unknown as CloudError;
      assert.deepEqual([status, error.code], [400, 'global/invalid-parameters'], public_key);
      assert.match(error.message, words);
    }
  });

  test('JSON is read whatever the content type, as working clients need', async () => {
    const server = await startTestServer();
    const types = [
      'application/json',
      'text/plain;charset=UTF-8',
      'application/x-www-form-urlencoded',
      '',
    ];
    for (const [n, type] of types.entries()) {
      const response = await server.fetch(path, {
        method: 'POST',
        body: new TextEncoder().encode(JSON.stringify({ name: `t${n}`, public_key: ed25519 })),
        headers: type === '' ? {} : { 'content-type': type },
      });
      assert.equal(response.status, 200, type);
    }
  });

  test('bad input is refused with its path, as pydantic words it', async () => {
    const server = await startTestServer();
    const cases: [object, string][] = [
      [{}, "Error in request body at 'name': Field required"],
      [{ name: 5 }, "Error in request body at 'name': Input should be a valid string"],
      [{ name: '' }, "Error in request body at 'name': String should have at least 1 character"],
      [
        { name: 'x'.repeat(65) },
        "Error in request body at 'name': String should have at most 64 characters",
      ],
      [
        { name: 'x', public_key: [] },
        "Error in request body at 'public_key': Input should be a valid string",
      ],
      [[], 'Error in request body: Input should be a valid dictionary'],
    ];
    for (const [body, message] of cases) {
      const answer = await add(server, body);
      const { error } = answer.body as unknown as CloudError;
      assert.deepEqual(
        [answer.status, error.code, error.message],
        [400, 'global/invalid-parameters', message],
      );
      assert(error.suggestion);
    }
  });

  test('unknown paths and methods, bad JSON, large bodies and bad keys are refused in the cloud’s error format', async () => {
    const server = await startTestServer();
    const tries: [string, Parameters<TestServer['fetch']>[1], number, string][] = [
      ['/api/v1/clusters', {}, 404, 'global/not-found'],
      ['/api/v1/ssh-keys', { method: 'PUT', json: {} }, 405, 'global/invalid-parameters'],
      ['/api/v1/ssh-keys', { method: 'POST', body: '{' }, 400, 'global/invalid-parameters'],
      [
        '/api/v1/ssh-keys',
        { method: 'POST', body: 'x'.repeat(6_553_601) },
        400,
        'global/invalid-parameters',
      ],
      ['/api/v1/instances', { headers: { authorization: '' } }, 401, 'global/invalid-api-key'],
      [
        '/api/v1/instances',
        { headers: { authorization: 'Basic bm9wZTo=' } },
        401,
        'global/invalid-api-key',
      ],
      [`/api/v1/instances/${'0'.repeat(32)}`, {}, 404, 'global/object-does-not-exist'],
    ];
    for (const [url, init, status, code] of tries) {
      const response = await server.fetch(url, init);
      const { error } = (await response.json()) as CloudError;
      assert.deepEqual([response.status, error.code], [status, code], url);
    }
    const none = await server.fetch('/api/v1/instances', { headers: { authorization: '' } });
    assert.deepEqual(await none.json(), {
      error: {
        code: 'global/invalid-api-key',
        message: 'API key was invalid, expired, or deleted.',
        suggestion: 'Check your API key or create a new one, then try again.',
      },
    });
  });

  test('lists have the contract’s form', async () => {
    const server = await startTestServer();
    for (const name of ['instances', 'file-systems', 'images', 'regions']) {
      const { data } = (await (await server.fetch(`/api/v1/${name}`)).json()) as { data: unknown };
      assert(Array.isArray(data), name);
    }
    const types = (await (await server.fetch('/api/v1/instance-types')).json()) as {
      data: unknown;
    };
    assert(typeof types.data === 'object' && !Array.isArray(types.data));
  });

  test('a client that keeps to one request a second is never refused, however the network delays it', async () => {
    const clock = createHandClock();
    const server = await startTestServer({
      clock,
      config: { cloud: { rate_limit: true, request_burst: 1 } },
    });
    const random = createRandom(7);
    const began = clock.now();
    for (let second = 0; second < 30; second++) {
      const arrivesAt = began + second * 1000 + random(500);
      clock.turn(Math.max(0, arrivesAt - clock.now()));
      assert.equal((await server.fetch('/api/v1/instances')).status, 200, `second ${second}`);
    }
    clock.turn(100);
    assert.equal((await server.fetch('/api/v1/instances')).status, 429, 'a faster one is');
  });

  test('an account gets one request per second with a retry-after; the dashboard is not limited', async () => {
    const clock = createHandClock();
    const server = await startTestServer({
      clock,
      config: { cloud: { rate_limit: true, request_burst: 1 } },
    });
    const call = () => server.fetch('/api/v1/instances');
    assert.equal((await call()).status, 200);
    const over = await call();
    assert.equal(over.status, 429);
    assert.equal(over.headers.get('retry-after'), '1');
    assert.equal(((await over.json()) as CloudError).error.code, 'global/too-many-requests');
    clock.turn(499);
    assert.equal((await call()).status, 429);
    clock.turn(1);
    assert.equal((await call()).status, 200, 'half a second too early is allowed once');
    const burst = await Promise.all(Array.from({ length: 20 }, call));
    assert(burst.every(({ status }) => status === 429));
    assert.equal((await server.fetch('/v1/models')).status, 200, 'inference has its own limits');
    const owner = await server.join();
    for (let n = 0; n < 5; n++) assert.equal((await owner('/api/v1/instances')).status, 200);
  });

  test('as many launches at once as launch_burst are admitted, and the 429 names both settings', async () => {
    const clock = createHandClock();
    for (const [settings, admitted] of [
      [{}, 1],
      [{ launch_burst: 2 }, 2],
    ] as const) {
      const server = await startTestServer({
        clock,
        config: { cloud: { rate_limit: true, emulate: true, driver: 'scripted', ...settings } },
      });
      const post = (path: string, body: object) =>
        server.fetch(`/api/v1/${path}`, { method: 'POST', body: JSON.stringify(body) });
      assert.equal((await post('ssh-keys', { name: 'laptop' })).status, 200);
      const launch = () =>
        post('instance-operations/launch', {
          region_name: 'us-west-1',
          instance_type_name: 'gpu_1x_a10',
          ssh_key_names: ['laptop'],
        });
      const responses = await Promise.all([launch(), launch(), launch()]);
      const refused = responses.filter(({ status }) => status === 429);
      assert.equal(responses.filter(({ status }) => status === 200).length, admitted);
      assert.equal(refused.length, 3 - admitted);
      const { error } = (await refused[0]!.json()) as CloudError;
      assert.match(error.message, /cloud\.launch_burst and cloud\.launch_interval_seconds/);
      clock.turn(10_000);
      assert.equal((await launch()).status, 200, 'one more after the interval');
      assert.equal((await launch()).status, 429);
    }
  });

  test('ten requests at once are served after a quiet while, and then one per second', async () => {
    const clock = createHandClock();
    const server = await startTestServer({ clock, config: { cloud: { rate_limit: true } } });
    const call = async () => (await server.fetch('/api/v1/instances')).status;
    const burst = await Promise.all(Array.from({ length: 12 }, call));
    assert.deepEqual(burst.toSorted(), [...Array.from({ length: 10 }, () => 200), 429, 429]);
    clock.turn(1000);
    assert.deepEqual([await call(), await call()], [200, 429]);
  });
});
