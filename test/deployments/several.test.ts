// Several deployments of one model, and settings that return to their defaults.

import assert from 'node:assert/strict';
import { afterEach, before, describe, test } from 'node:test';
import { createRunningClock } from '#test/support/clock.ts';
import { openTestDeployments, type TestDeployments } from '#test/support/deployments.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

describe('several deployments of one model', () => {
  let server: TestServer;
  let deployments: TestDeployments;
  const clock = createRunningClock();
  before(async () => {
    server = await startTestServer({ clock });
    deployments = openTestDeployments(server, await server.join(), clock);
  });
  afterEach(() => deployments.removeAll());

  test('start one replica for a request that waits', async () => {
    const env = { LOAD_MS: '300' };
    await deployments.create('second', { env });
    await deployments.create('first', { env });
    const answer = await deployments.chat();
    assert.match(answer.headers.get('x-served-by') ?? '', /^first-/);
    assert.deepEqual((await deployments.show('second')).replicas, []);
  });

  test('start beside a ready one that has more requests than it may have replicas for', async () => {
    await deployments.create('small', { target: 1, env: { TOKEN_MS: '100', TOKENS: '30' } });
    await deployments.create('spare');
    const streams = [await deployments.chat({ stream: true })];
    await clock.until(
      'one is ready',
      async () => (await deployments.show('small')).status === 'ready',
    );
    assert.equal((await deployments.show('spare')).status, 'idle');
    streams.push(await deployments.chat({ stream: true }));
    await clock.until(
      'the other starts',
      async () => (await deployments.show('spare')).status === 'ready',
    );
    for (const { body } of streams) await body?.cancel();
  });

  test('a null returns a setting to its default', async () => {
    await deployments.create('small', { source: '/models/a.gguf', max: 3, args: ['x'] });
    const changed = await deployments.call('POST', '/small', { source: null, max: null });
    assert.deepEqual([changed.data.source, changed.data.max, changed.data.args], [null, 1, ['x']]);
    const refused = await deployments.call('POST', '/small', { program: null });
    assert.match(refused.error?.message ?? '', /needs a program/);
  });

  test('a held stream of each API opens with one sign of life', async () => {
    const opening = async (path: string, json: object) => {
      await deployments.create('slow', { env: { LOAD_MS: '60000' } });
      const response = await server.fetch(path, {
        json: { model: 'hermes3-8b', stream: true, ...json },
      });
      const reader = response.body!.getReader();
      const { value } = await reader.read();
      await reader.cancel();
      await deployments.removeAll();
      return Buffer.from(value ?? []).toString();
    };
    const messages = [{ role: 'user', content: 'Hi' }];
    assert.equal(await opening('/v1/chat/completions', { messages }), ': waiting\n\n');
    const ping = await opening('/v1/messages', { messages, max_tokens: 5 });
    assert.equal(ping.match(/^event: ping$/gm)?.length, 1, ping);
    const responses = await opening('/v1/responses', { input: 'Hi' });
    assert.equal(responses.match(/^event: response\.in_progress$/gm)?.length, 1, responses);
  });
});
