// Backends that report token counts which can't be true: the tokens are counted here, for the row, the
// response and the budget, and the log and the dashboard name the backend.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import type { UsageRequestPage } from '#accounts/usage/schema.ts';
import { createImplausibleRecord } from '#inference/backends/implausible-counts.ts';
import type { BackendView } from '#inference/backends/schema.ts';
import type { Task } from '#inference/engine.ts';
import type { Behaviour } from '#inference/engines/scripted/behaviours.ts';
import { isPlausible, toCountBounds } from '#inference/engines/upstream/usage.ts';
import { createLlama3Counter } from '#inference/models/tokens.ts';
import type { Usage } from '#inference/wire/response.ts';
import { createHandClock } from '#test/support/clock.ts';
import { gatewayModel, readEvents, startGateway } from '#test/support/gateway.ts';
import { listKeys, newKey } from '#test/support/limits/callers.ts';
import { until } from '#test/support/until.ts';

const messages = [{ role: 'user' as const, content: 'The wheel turns, and the mill grinds.' }];
const prompt = 'The wheel turns, and the mill grinds.';
const counter = createLlama3Counter();
const said = 'The wheel türnt';
const ofChat = await counter.count(
  { kind: 'chat', body: { model: gatewayModel, messages } },
  'llama3-chatml',
  1e6,
);
const ofText = await counter.count(
  { kind: 'completion', body: { model: gatewayModel, prompt } },
  'llama3-chatml',
  1e6,
);

/** Only now: texts are counted once the vocabulary is there. */
const generated = await counter.countText(said);

const lies: Behaviour[] = [
  'counts-far-too-many',
  'counts-below-zero',
  'counts-without-numbers',
  'counts-more-cached-than-read',
];

const toPair = ({ prompt_tokens, completion_tokens }: Usage) => [prompt_tokens, completion_tokens];

describe('token counts that can’t be true', () => {
  it('are counted here instead, in the response, the stream and the row, and a budget survives', async (t) => {
    const { server, upstreams } = await startGateway(t, { upstreams: [{ words: 3 }] });
    const owner = await server.join();
    const key = await newKey(owner, { monthly_budget: 5 });
    const ask = (path: string, body: object) =>
      server.fetch(path, {
        json: { model: gatewayModel, max_tokens: 100, ...body },
        headers: { authorization: `Bearer ${key.key}` },
      });
    const ways = [
      { path: '/v1/chat/completions', body: { messages }, ofPrompt: ofChat },
      { path: '/v1/completions', body: { prompt }, ofPrompt: ofText },
    ];
    // The server loads its vocabulary when it can, and until then goes by length.
    upstreams[0]?.behave('never-counts');
    await until('the vocabulary is loaded', async () => {
      const { usage } = (await (await ask('/v1/chat/completions', { messages })).json()) as {
        usage: Usage;
      };
      return usage.prompt_tokens === ofChat && usage.completion_tokens === generated;
    });
    for (const behaviour of lies) {
      upstreams[0]?.behave(behaviour);
      for (const { path, body, ofPrompt } of ways) {
        const whole = (await (await ask(path, body)).json()) as { usage: Usage };
        assert.deepEqual(toPair(whole.usage), [ofPrompt, generated], `${behaviour} ${path}`);
        const total = Number(ofPrompt) + Number(generated);
        assert.equal(whole.usage.total_tokens, total);
        const options = { stream: true, stream_options: { include_usage: true } };
        const streamed = await readEvents(await ask(path, { ...body, ...options }));
        assert.equal(streamed.text, said);
        assert.deepEqual(toPair(streamed.usage as Usage), [ofPrompt, generated], behaviour);
      }
    }
    const asked = lies.length * ways.length * 2;
    const rows = await until('all rows are written', async () => {
      const response = await owner(`/dashboard/api/usage/requests?key=${key.id}&limit=500`);
      const { data } = (await response.json()) as UsageRequestPage;
      return data.length >= asked && data.every(({ status }) => status === 'done') ? data : null;
    });
    for (const row of rows) {
      assert.equal(row.completion_tokens, generated);
      assert.equal(row.cached_tokens, 0);
    }
    const limited = (await listKeys(owner)).find(({ id }) => id === key.id);
    assert(limited !== undefined && limited.spend.cost < 0.001, `${limited?.spend.cost}`);

    const { data } = (await (await owner('/dashboard/api/backends?limit=500')).json()) as {
      data: BackendView[];
    };
    const backend = data.find(({ model }) => model === gatewayModel);
    assert.equal(backend?.implausible_counts, asked);
    const metrics = await (await server.fetch('/metrics')).text();
    const line = /^millrace_backend_implausible_counts_total\{.*hermes3-8b.*\} (\d+)$/m.exec(
      metrics,
    );
    assert.equal(Number(line?.[1]), asked);
  });

  it('are recognised by what was requested and what arrived', () => {
    const body = { model: 'm', messages, max_tokens: 100 };
    const chat: Task = { kind: 'chat', body };
    const bounds = toCountBounds(chat, 8192, 300);
    const usage = (completion: number, more: object = {}): Usage => ({
      prompt_tokens: 12,
      completion_tokens: completion,
      total_tokens: 12 + completion,
      prompt_tokens_details: null,
      ...more,
    });
    assert(isPlausible(usage(100), bounds, 0));
    assert(!isPlausible(usage(200), bounds, 1_000_000));
    assert(
      isPlausible(
        usage(200),
        toCountBounds({ kind: 'chat', body: { ...body, n: 2 } }, 8192, 300),
        1e6,
      ),
    );
    assert(!isPlausible(usage(5, { prompt_tokens: 2000 }), bounds, 1000));
    assert(!isPlausible(usage(5, { total_tokens: 1e12 }), bounds, 1000));
    assert(!isPlausible(usage(5, { prompt_tokens_details: { cached_tokens: 13 } }), bounds, 1000));
    assert(isPlausible(usage(5, { prompt_tokens_details: { cached_tokens: 12 } }), bounds, 1000));

    const unnamed = toCountBounds({ kind: 'chat', body: { model: 'm', messages } }, 131_072, 300);
    assert(!isPlausible(usage(100_000), unnamed, 500));
    assert(isPlausible(usage(5000), unnamed, 5000), 'as long as its text');
    assert(isPlausible(usage(1000), unnamed, 0), 'special tokens leave no text');
    const thought = { completion_tokens_details: { reasoning_tokens: 90_000 } };
    assert(isPlausible(usage(90_500, thought), unnamed, 500), 'reasoning that is counted apart');
    assert(
      !isPlausible(
        usage(1e9, { completion_tokens_details: { reasoning_tokens: 1e9 } }),
        unnamed,
        500,
      ),
    );
  });

  it('may be long without text if the request hides it, and long for images', () => {
    const unseen = (body: object, kind: Task['kind'] = 'chat') =>
      toCountBounds(
        { kind, body: { model: 'm', messages, prompt, ...body } } as Task,
        131_072,
        300,
      );
    assert.equal(unseen({ reasoning_effort: 'high' }).unseenTokens, Infinity);
    assert.equal(unseen({ include_reasoning: false }).unseenTokens, Infinity);
    assert.equal(unseen({ best_of: 4, n: 1 }, 'completion').unseenTokens, Infinity);
    assert(Number.isFinite(unseen({}).unseenTokens));
    const image = { type: 'image_url', image_url: { url: 'http://a/b.png' } };
    const pictures = unseen({ messages: [{ role: 'user', content: [image] }] });
    assert.equal(pictures.promptTokens, 131_072);
    assert(unseen({}).promptTokens < 2000);
  });

  it('are logged once an hour for a backend, and forgotten after a day', () => {
    const clock = createHandClock();
    const lines: string[] = [];
    const log = pino({ level: 'warn' }, { write: (line: string) => void lines.push(line) });
    const record = createImplausibleRecord(clock, log, 'm/a');
    const counts = {
      reported: { prompt_tokens: Number.NaN, completion_tokens: 1e12, total_tokens: 1e12 },
      bounds: { promptTokens: 1, completionTokens: 1, unseenTokens: 1 },
      responseBytes: 1,
    };
    const add = () =>
      record.add({ ...counts, reported: { ...counts.reported, prompt_tokens_details: null } });
    for (let count = 0; count < 1000; count++) add();
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? '', /"backend":"m\/a".*"prompt_tokens":"no count"/);
    clock.turn(3_600_000);
    add();
    assert.equal(lines.length, 2);
    assert.equal(record.recent(), 1001);
    clock.turn(23 * 3_600_000);
    assert.equal(record.recent(), 1);
    clock.turn(3_600_000);
    assert.equal(record.recent(), 0);
    assert.equal(record.total(), 1001);
  });
});
