// A backend that is several times slower than its peers: requests don't wait for it beside one that could answer at once.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createPace, slownessOf } from '#inference/routing/pace.ts';
import { createHandClock } from '#test/support/clock.ts';
import { startGateway } from '#test/support/gateway.ts';

const api = '/dashboard/api';

describe('a slow backend', () => {
  test('gets few requests beside a fast one, and is shown as slow', async (t) => {
    const gateway = await startGateway(t, { upstreams: [{ delayMs: 2_000 }, { delayMs: 5 }] });
    const { server, upstreams } = gateway;
    const owner = await server.join();
    // Both orders of preference: each caller begins with a prefix of its own.
    const callers = Array.from({ length: 4 }, async (_, caller) => {
      for (let at = 0; at < 40; at++) {
        const messages = [{ role: 'user', content: `caller ${caller}` }];
        const response = await gateway.chat({ messages, stream: at % 2 === 0 });
        assert.equal(response.status, 200);
        await response.text();
      }
    });
    await Promise.all(callers);
    const [slow = 0, fast = 0] = upstreams.map(
      ({ requests }) => requests.filter(({ path }) => path.endsWith('/chat/completions')).length,
    );
    assert.equal(slow + fast, 160);
    assert(fast >= 152, `${slow} went to the slow one`);
    const { data } = (await (await owner(`${api}/backends`)).json()) as {
      data: { name: string; slowness: number | null; kind: string }[];
    };
    const shown = Object.fromEntries(
      data.filter(({ kind }) => kind === 'upstream').map(({ name, slowness }) => [name, slowness]),
    );
    assert.equal(shown.b, null);
    assert((shown.a ?? 0) > 3, JSON.stringify(shown));
  });
});

describe('the pace of a backend', () => {
  const work = { durationMs: 1_000, promptTokens: 500, completionTokens: 58 };

  test('does not depend on the lengths of prompts and responses', () => {
    const clock = createHandClock();
    const [one, other] = [createPace(clock), createPace(clock)];
    one.add(work);
    other.add({ durationMs: 10_000, promptTokens: 5_000, completionTokens: 868 });
    assert.equal(one.read(), 10);
    assert.equal(other.read(), 10);
  });

  test('is forgotten when it is old, so that the backend is tried again', () => {
    const clock = createHandClock();
    const pace = createPace(clock);
    pace.add(work);
    clock.turn(59_000);
    assert.equal(pace.read(), 10);
    clock.turn(1_000);
    assert.equal(pace.read(), null);
    pace.add({ ...work, durationMs: 20_000 });
    clock.turn(399_000);
    assert.equal(pace.read(), 200);
    clock.turn(1_000);
    assert.equal(pace.read(), null);
  });

  test('is no faster for requests whose clients gave up', () => {
    const pace = createPace(createHandClock());
    const left = { promptTokens: 0, completionTokens: 0, isPartial: true };
    pace.add({ ...left, durationMs: 10 });
    assert.equal(pace.read(), null);
    pace.add({ ...left, durationMs: 6_400 });
    assert.equal(pace.read(), 200);
    pace.add({ ...left, durationMs: 10 });
    assert.equal(pace.read(), 200);
  });

  test('makes a backend slow from three times that of the fastest', () => {
    assert.equal(slownessOf(29, 10), 1);
    assert.equal(slownessOf(30, 10), 3);
    assert.equal(slownessOf(2, 0.1), 1);
    assert.equal(slownessOf(2.1, 0.1), 21);
    assert.equal(slownessOf(null, 10), 1);
    assert.equal(slownessOf(10, null), 1);
  });
});
