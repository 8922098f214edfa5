// Overload distinguished from failure, through HTTP: the queue, its deadline, its order, and every refusal
// of the contract that a backend can be the cause of.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { startScriptedUpstream } from '#inference/engines/scripted/server.ts';
import { type Gateway, readEvents, startGateway } from '#test/support/gateway.ts';
import { newKey } from '#test/support/limits/callers.ts';
import { startTestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

async function refusalOf(response: Response) {
  const { error } = (await response.json()) as {
    error: { code: string; type: string; message: string };
  };
  const { headers } = response;
  return {
    message: error.message,
    shown: [response.status, error.type, error.code],
    retryAfter: Number(headers.get('retry-after')),
    servedBy: headers.get('x-served-by'),
  };
}

const overloaded = [503, 'service_unavailable_error', 'server_is_overloaded'];
const sumOf = ({ upstreams }: Gateway) => upstreams.flatMap(({ requests }) => requests).length;

describe('a model whose backends are busy', () => {
  const busy = { upstreams: [{ behaviour: 'never-ends' as const }], backend: { concurrency: 1 } };

  test('queues requests, refuses beyond the maximum length, and sends a retry-after', async (test) => {
    const gateway = await startGateway(test, {
      ...busy,
      inference: { queue: { length: 1, wait_seconds: 60 } },
    });
    const leaving = new AbortController();
    const running = await gateway.chat({ stream: true }, { signal: leaving.signal });
    const waiting = gateway.chat();
    await until('it waits', async () =>
      /millrace_queue_length\{gen_ai_response_model="hermes3-8b"\} 1/.test(await gateway.metrics()),
    );
    const refusal = await refusalOf(await gateway.chat());
    assert.deepEqual(refusal.shown, overloaded);
    assert.match(refusal.message, /^hermes3-8b is overloaded\. 1 requests are already waiting/);
    assert(refusal.retryAfter >= 1);
    assert.equal(refusal.servedBy, null);
    gateway.upstreams[0]?.behave('answers');
    leaving.abort();
    await running.text().catch(() => {});
    const response = await waiting;
    assert.equal(response.status, 200);
    assert(Number(response.headers.get('x-overhead-ms')) > 0);
    const metrics = await gateway.metrics();
    assert.match(metrics, /millrace_queue_wait_seconds_count\{[^}]*\} 1/);
    assert.match(metrics, /millrace_queue_refusals_total\{[^}]*millrace_reason="full"\} 1/);
  });

  test('refuses a request at its deadline, and removes one whose client leaves at once', async (test) => {
    const gateway = await startGateway(test, {
      ...busy,
      inference: { queue: { length: 9, wait_seconds: 0.3 } },
    });
    // Kept in a variable: fetch aborts a response that is garbage-collected.
    const running = await gateway.chat({ stream: true });
    const leaving = new AbortController();
    const left = gateway.chat({}, { signal: leaving.signal });
    leaving.abort();
    await assert.rejects(left);
    const refusal = await refusalOf(await gateway.chat());
    assert.deepEqual(refusal.shown, overloaded);
    assert.match(refusal.message, /waited \d+ ms for its turn/);
    assert.equal(sumOf(gateway), 1);
    assert.match(await gateway.metrics(), /millrace_queue_length\{[^}]*8b"\} 0/);
    await running.body?.cancel();
  });

  test('serves the more urgent first', async (test) => {
    const gateway = await startGateway(test, { upstreams: [{}], backend: { concurrency: 1 } });
    gateway.upstreams[0]?.behave('never-ends');
    const leaving = new AbortController();
    const running = await gateway.chat({ stream: true }, { signal: leaving.signal });
    const answers = [5, 0, -5].map((priority) => gateway.chat({ priority, user: `${priority}` }));
    await until('all wait', async () =>
      /millrace_queue_length\{[^}]*hermes3-8b"\} 3/.test(await gateway.metrics()),
    );
    gateway.upstreams[0]?.behave('answers');
    leaving.abort();
    await running.text().catch(() => {});
    await Promise.all(answers);
    const order = gateway.upstreams[0]?.requests.slice(1).map(({ body }) => body.user);
    assert.deepEqual(order, ['-5', '0', '5']);
  });
});

test('the queue of a model on this machine has the configured length', async (test) => {
  const server = await startTestServer({
    config: { inference: { queue: { length: 1, wait_seconds: 60 } } },
  });
  test.after(() => server.stop());
  const leaving = new AbortController();
  const ask = (n: number) =>
    server.fetch('/v1/completions', {
      json: {
        model: 'hermes3-8b',
        prompt: 'Once',
        max_tokens: 1500,
        ignore_eos: true,
        n,
        stream: true,
      },
      signal: leaving.signal,
    });
  // Eight choices take all sequences of the model.
  const running = await ask(8);
  const waiting = ask(1);
  const isFull = async () => {
    const response = await Promise.race([ask(1), waiting]);
    return response.status === 503 ? refusalOf(response) : null;
  };
  const refusal = await isFull();
  assert.deepEqual(refusal?.shown, overloaded);
  assert.match(
    refusal?.message ?? '',
    /^hermes3-8b is overloaded\. 1 requests are already waiting/,
  );
  leaving.abort();
  await Promise.allSettled([waiting, running.text()]);
});

describe('a model whose backends fail', () => {
  test('a backend that is down is skipped, and the client gets the other’s response', async (test) => {
    const gateway = await startGateway(test, { upstreams: [{}, {}] });
    gateway.upstreams[0]?.behave('dies-at-once');
    for (let at = 0; at < 8; at++) {
      const plain = await gateway.chat({
        user: `${at}`,
        messages: [{ role: 'user', content: `${at}` }],
      });
      assert.deepEqual([plain.status, plain.headers.get('x-served-by')], [200, 'b']);
      const { finish } = await readEvents(await gateway.chat({ stream: true }));
      assert.equal(finish, 'stop');
    }
    // After three failures it is left alone.
    assert.equal(gateway.upstreams[0]?.requests.length, 3);
    const metrics = await gateway.metrics();
    assert.match(metrics, /millrace_backend_failures_total\{[^}]*millrace_backend="a"[^}]*\} 3/);
    assert.match(metrics, /millrace_backend_ejections_total\{[^}]*millrace_backend="a"\} 1/);
  });

  const refusals = [
    ['dies-at-once', [502, 'server_error', 'upstream_error']],
    ['html-error', [502, 'server_error', 'upstream_error']],
    ['slow-headers', [504, 'server_error', 'upstream_timeout']],
    ['too-many-requests', overloaded],
  ] as const;
  for (const [behaviour, shown] of refusals) {
    test(`all of them: ${behaviour} is reported as ${shown[0]}, after each was asked once`, async (test) => {
      const gateway = await startGateway(test, {
        upstreams: [{ behaviour }, { behaviour }],
        backend: { first_byte_ms: 200 },
      });
      for (const stream of [false, true]) {
        const refusal = await refusalOf(await gateway.chat({ stream }));
        assert.deepEqual(refusal.shown, shown);
        assert.match(refusal.servedBy ?? '', /^[ab]$/);
        if (behaviour === 'too-many-requests') assert.equal(refusal.retryAfter, 2);
      }
      assert.equal(sumOf(gateway), 4);
    });
  }

  test('once all are ejected no request is sent: 503 until the ejection is over', async (test) => {
    const gateway = await startGateway(test, {
      upstreams: [{ behaviour: 'dies-at-once' }],
      health: { eject_after: 1, eject_seconds: 30 },
    });
    assert.deepEqual((await refusalOf(await gateway.chat())).shown[0], 502);
    const refusal = await refusalOf(await gateway.chat());
    assert.deepEqual(refusal.shown, [503, 'service_unavailable_error', 'model_unavailable']);
    assert.equal(refusal.retryAfter, 10, 'a probe may find it well before its time is over');
    assert.equal(sumOf(gateway), 1);
  });

  test('one client’s unreadable responses eject no backend, and those of two clients do', async (test) => {
    const gateway = await startGateway(test, { upstreams: [{ behaviour: 'wrong-content-type' }] });
    const { key } = await newKey(await gateway.server.join(), {});
    const other = { headers: { authorization: `Bearer ${key}` } };
    const send = async (as = {}) => (await gateway.chat({ stream: true }, as)).status;
    for (let at = 0; at < 10; at++) assert.equal(await send(), 502);
    const statuses: number[] = [];
    for (let at = 0; at < 4; at++) statuses.push(await (at % 2 === 0 ? send(other) : send()));
    assert.deepEqual(statuses, [502, 502, 502, 503]);
  });

  test('a model recovers by itself once its backend does', async (test) => {
    const gateway = await startGateway(test, {
      upstreams: [{ behaviour: 'dies-at-once' }],
      health: { eject_after: 1, eject_seconds: 0.1 },
    });
    assert.equal((await gateway.chat()).status, 502);
    gateway.upstreams[0]?.behave('answers');
    await until('it answers again', async () => (await gateway.chat()).status === 200);
  });
});

test('headers say which backend served a request, and how much of its time was spent here', async (test) => {
  const gateway = await startGateway(test, { upstreams: [{ delayMs: 300 }] });
  for (const stream of [false, true]) {
    const response = await gateway.chat({ stream });
    assert.equal(response.headers.get('x-served-by'), 'a');
    const overheadMs = Number(response.headers.get('x-overhead-ms'));
    const totalMs = Number(response.headers.get('openai-processing-ms'));
    assert(overheadMs > 0 && totalMs - overheadMs >= 290, `${overheadMs} of ${totalMs} ms`);
    await response.text();
  }
  const metrics = await gateway.metrics();
  assert.match(metrics, /millrace_overhead_seconds_count\{[^}]*millrace_backend="a"\} 2/);
  // That of a response that comes whole is unknown.
  assert.match(metrics, /gen_ai_server_time_to_first_token_seconds_count\{[^}]*\} 1/);
});

test('members of a backend’s response besides its choices come with its usage', async (test) => {
  const gateway = await startGateway(test, { upstreams: [{}] });
  const timings = { predicted_n: 10 };
  const plain = (await (await gateway.chat()).json()) as { timings: object };
  assert.deepEqual(plain.timings, timings);
  const stream = (body: object) => gateway.chat({ stream: true, ...body }).then(readEvents);
  const { events } = await stream({ stream_options: { include_usage: true } });
  assert.deepEqual([events.at(-1)?.choices, events.at(-1)?.timings], [[], timings]);
  // Without include_usage there is no event without choices.
  assert((await stream({})).events.every(({ choices }) => (choices as object[]).length === 1));
});

test('a backend that is added while requests wait takes them', async (test) => {
  const gateway = await startGateway(test, {
    upstreams: [{ behaviour: 'never-ends' }],
    backend: { concurrency: 1 },
  });
  const extra = await startScriptedUpstream();
  test.after(() => extra.close());
  const running = await gateway.chat({ stream: true });
  const waiting = gateway.chat();
  const owner = await gateway.server.join();
  const added = await owner('/dashboard/api/backends', {
    json: { model: 'hermes3-8b', name: 'extra', url: extra.url, upstream_model: 'scripted' },
  });
  assert.equal(added.status, 200, await added.text());
  assert.equal((await waiting).headers.get('x-served-by'), 'extra');
  await running.body?.cancel();
});

test('what was generated is counted when the backend dies or the client leaves', async (test) => {
  const gateway = await startGateway(test, { upstreams: [{ behaviour: 'half-a-chunk' }] });
  const generated = async () => {
    const counted = /gen_ai_client_token_usage_total\{[^}]*gen_ai_token_type="output"\} (\d+)/;
    return Number(counted.exec(await gateway.metrics())?.[1] ?? 0);
  };
  assert.equal((await readEvents(await gateway.chat({ stream: true }))).finish, 'error');
  await until('it is counted', async () => (await generated()) === 1);
  gateway.upstreams[0]?.behave('never-ends');
  const leaving = new AbortController();
  const response = await gateway.chat({ stream: true }, { signal: leaving.signal });
  const reader = response.body?.getReader();
  for (let seen = 0; seen < 500; ) seen += (await reader?.read())?.value?.length ?? 500;
  leaving.abort();
  await until('it is counted', async () => (await generated()) > 1);
  await until(
    'the backend is let go',
    () => gateway.upstreams[0]?.requests.at(-1)?.state === 'left',
  );
  assert.match(await gateway.metrics(), /duration_seconds_count\{[^}]*outcome="aborted"\} 1/);
});

test('a server that stops ends the requests that it can’t wait for with an error', async (test) => {
  const gateway = await startGateway(test, { upstreams: [{ behaviour: 'never-ends' }] });
  const stream = await gateway.chat({ stream: true });
  gateway.upstreams[0]?.behave('slow-headers');
  const plain = gateway.chat();
  await until('both are asked', () => sumOf(gateway) === 2);
  await Promise.all([
    gateway.server.stop(),
    readEvents(stream).then(({ finish }) => assert.equal(finish, 'error')),
    plain.then(async (response) =>
      assert.deepEqual((await refusalOf(response)).shown, [502, 'server_error', 'upstream_error']),
    ),
  ]);
});
