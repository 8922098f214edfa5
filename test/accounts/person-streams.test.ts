// Event streams of people: what a client that left early took of the limit is given back.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import Fastify from 'fastify';
import type { Authenticator } from '#accounts/authenticate.ts';
import { createPersonStreams } from '#accounts/people/person-streams.ts';

test('a client that left before its stream was opened does not count', async (t) => {
  const app = Fastify();
  t.after(() => app.close());
  app.decorateRequest('principal', null);
  app.addHook('onRequest', async (request) => {
    Object.assign(request, { principal: { kind: 'session', userId: 'ann' } });
  });
  const authenticator = { findSession: async () => undefined };
  const open = createPersonStreams(app, authenticator as unknown as Authenticator, 1);
  const left = Promise.withResolvers<void>();
  const client = new AbortController();
  app.get('/left', async (request, reply) => {
    client.abort();
    await once(reply.raw, 'close');
    open(request, reply);
    left.resolve();
  });
  app.get('/', async (request, reply) => open(request, reply).end());
  const url = await app.listen();
  await assert.rejects(fetch(`${url}/left`, { signal: client.signal }));
  await left.promise;
  assert.equal((await fetch(url)).status, 200);
});
