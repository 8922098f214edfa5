// Which model and backends may serve a request, decided before any engine sees it: by size and by content.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Backend, BackendList } from '#inference/backends/backend.ts';
import { EngineError, type Task } from '#inference/engine.ts';
import { InferenceError } from '#inference/errors.ts';
import { type CatalogChange, createCatalog } from '#inference/models/catalog.ts';
import { createLlama3Counter } from '#inference/models/tokens.ts';
import type { ChatMessage, ChatRequest } from '#inference/schema.ts';
import { type Plan, planRequest } from '#inference/serving/plan.ts';
import { newBackend, newEngine } from '#test/support/backends.ts';
import { createHandClock } from '#test/support/clock.ts';
import { createPair } from '#test/support/upstream.ts';

const words = (count: number) => 'word '.repeat(count).trim();
const chat = (content: ChatMessage['content'], more: Partial<ChatRequest> = {}): Task => ({
  kind: 'chat',
  body: { model: 'm', messages: [{ role: 'user', content }], ...more },
});

const llama3 = createLlama3Counter();

/** An engine that counts so many tokens for anything, and says how often it was asked. */
function countingBackend(name: string, tokens: () => Promise<number | null>, given = {}) {
  const asked = { times: 0 };
  const countPromptTokens = () => {
    asked.times++;
    return tokens();
  };
  const engine = { ...newEngine(name), countPromptTokens };
  return { asked, backend: newBackend(name, { engine, ...given }) };
}

function plannerOf(
  changes: Record<string, CatalogChange>,
  backends: Record<string, readonly Backend[]>,
) {
  const catalog = createCatalog({ builtinIds: false, changes: new Map(Object.entries(changes)) });
  const list: BackendList = {
    forModel: (id) => backends[id] ?? [],
    hasEnded: async () => false,
    close: async () => {},
  };
  const counts = { made: 0 };
  const counter: typeof llama3 = {
    ...llama3,
    count(...given) {
      counts.made++;
      return llama3.count(...given);
    },
  };
  const parts = { catalog, counter, backends: list };
  return {
    counts,
    async plan(id: string, task: Task): Promise<Plan> {
      const entry = catalog.find(id);
      assert(entry !== undefined);
      const bodyBytes = Buffer.byteLength(JSON.stringify(task.body));
      return planRequest(parts, entry, { task, bodyBytes, signal: new AbortController().signal });
    },
  };
}

const refusal = (code: string, message: RegExp) => (error: unknown) => {
  assert(error instanceof InferenceError, `${error}`);
  assert.equal(error.status, 400);
  assert.equal(error.code, code);
  assert.match(error.message, message);
  return true;
};

describe('the plan of a request', () => {
  it('needs no count if its bytes show that no rule can apply', async () => {
    const { asked, backend } = countingBackend('a', async () => 1);
    const one = plannerOf(
      {
        m: { vocabulary: 'other', contextWindow: 1000 },
        l: { vocabulary: 'llama3', contextWindow: 1000 },
      },
      { m: [backend], l: [backend] },
    );
    for (const id of ['m', 'l']) {
      const { served, promptTokens, unfit } = await one.plan(id, chat(words(50)));
      assert.deepEqual([served.id, promptTokens, unfit.size], [id, null, 0]);
    }
    assert.deepEqual([asked.times, one.counts.made], [0, 0]);
    await one.plan('m', chat(words(400)));
    await one.plan('l', chat(words(400)));
    assert.deepEqual([asked.times, one.counts.made], [1, 1]);
  });

  it('refuses a request that fits nowhere, with the window and both counts', async () => {
    const one = plannerOf(
      { l: { vocabulary: 'llama3', contextWindow: 500 } },
      { l: [newBackend('a')] },
    );
    // 460 words are as many tokens; 35 are the template's with its dates.
    const fits = await one.plan('l', chat(words(460), { max_tokens: 5 }));
    assert.equal(fits.promptTokens, 495);
    await assert.rejects(
      one.plan('l', chat(words(460), { max_tokens: 6 })),
      refusal(
        'context_length_exceeded',
        /^This model.s maximum context length is 500 tokens; the prompt has 495 and 6 are needed/,
      ),
    );
    await assert.rejects(
      one.plan('l', chat(words(466))),
      refusal('context_length_exceeded', /the prompt has 501 and at least 1 is needed/),
    );
  });

  it('other vocabularies are counted by a backend that can', async (t) => {
    const { engine } = await createPair(t);
    const cannot = countingBackend('cannot', async () => null);
    const sick = countingBackend('sick', async () => 1);
    for (let failures = 0; failures < 3; failures++) sick.backend.health.failed('down');
    const backends = [sick.backend, cannot.backend, newBackend('vllm', { engine })];
    const one = plannerOf({ m: { vocabulary: 'other', contextWindow: 100 } }, { m: backends });
    // The scripted server counts words, and its own two of each message.
    assert.equal((await one.plan('m', chat(words(80)))).promptTokens, 83);
    assert.deepEqual([sick.asked.times, cannot.asked.times], [0, 1]);
    await assert.rejects(
      one.plan('m', chat(words(120))),
      refusal('context_length_exceeded', /the prompt has 123 /),
    );
  });

  it('an ejected backend counts again once its ejection is over', async () => {
    const clock = createHandClock();
    const health = newBackend('a', {}, clock).health;
    const back = countingBackend('back', async () => 50, { health });
    for (let failures = 0; failures < 3; failures++) health.failed('down');
    const one = plannerOf(
      { m: { vocabulary: 'other', contextWindow: 100 } },
      { m: [back.backend] },
    );
    assert.equal((await one.plan('m', chat(words(80)))).promptTokens, null);
    clock.turn(2000);
    assert.equal((await one.plan('m', chat(words(80)))).promptTokens, 50);
    assert.equal(back.asked.times, 1);
  });

  it('a prompt that its server truncates counts as long as what is kept', async () => {
    const { backend } = countingBackend('a', async () => 120);
    const one = plannerOf({ m: { vocabulary: 'other', contextWindow: 100 } }, { m: [backend] });
    const cutTo = (truncate_prompt_tokens: number) =>
      one.plan('m', chat(words(120), { truncate_prompt_tokens } as Partial<ChatRequest>));
    assert.equal((await cutTo(50)).promptTokens, 50);
    await assert.rejects(cutTo(110), refusal('context_length_exceeded', /the prompt has 110 /));
    await assert.rejects(cutTo(500), refusal('context_length_exceeded', /the prompt has 120 /));
    // To whatever it can hold.
    assert.equal((await cutTo(-1)).promptTokens, null);
  });

  it('if no counter is available, the larger model is chosen and nothing is refused by an estimate', async () => {
    const failing = async () => {
      throw new EngineError('unavailable', 'It can not count.');
    };
    for (const tokens of [failing, async () => null]) {
      const one = plannerOf(
        {
          m: {
            vocabulary: 'other',
            contextWindow: 100,
            contextFallback: { above: 90, to: 'long' },
          },
          long: { vocabulary: 'other', contextWindow: 200 },
        },
        {
          m: [countingBackend('a', tokens).backend],
          long: [countingBackend('b', tokens).backend],
        },
      );
      const { served, promptTokens, unfit } = await one.plan('m', chat(words(500)));
      assert.deepEqual([served.id, promptTokens, unfit.size], ['long', null, 0]);
    }
  });

  it('a fallback may have one of its own, each held against its own count', async () => {
    const chain: Record<string, CatalogChange> = {
      m: { vocabulary: 'llama3', contextWindow: 300, contextFallback: { above: 200, to: 'mid' } },
      mid: { vocabulary: 'other', contextWindow: 500, contextFallback: { above: 400, to: 'big' } },
      big: { vocabulary: 'other', contextWindow: 1000 },
    };
    const planFor = (midTokens: number, bigTokens: number) =>
      plannerOf(chain, {
        m: [newBackend('a')],
        mid: [countingBackend('b', async () => midTokens).backend],
        big: [countingBackend('c', async () => bigTokens).backend],
      });
    const served = async (tokens: number, count: number) =>
      (await planFor(tokens, tokens).plan('m', chat(words(count)))).served.id;
    assert.equal(await served(350, 100), 'm');
    assert.equal(await served(350, 300), 'mid');
    assert.equal(await served(401, 300), 'big');
    await assert.rejects(
      planFor(401, 1000).plan('m', chat(words(300))),
      refusal('context_length_exceeded', /context length is 1000 tokens; the prompt has 1000 /),
    );
  });

  it('a request at the limit stays, one token more goes to the fallback, and the completion counts', async () => {
    const one = plannerOf(
      {
        m: { vocabulary: 'llama3', contextFallback: { above: 495, to: 'long' } },
        long: { vocabulary: 'llama3' },
      },
      { m: [newBackend('a')], long: [newBackend('b')] },
    );
    const served = async (task: Task) => (await one.plan('m', task)).served.id;
    assert.equal(await served(chat(words(460))), 'm');
    assert.equal(await served(chat(words(461))), 'long');
    assert.equal(await served(chat(words(460), { max_tokens: 1 })), 'long');
    assert.equal(await served(chat('x', { max_completion_tokens: 480 })), 'long');
  });

  it('a backend whose own window is too small is excluded while a larger one is available', async () => {
    const small = newBackend('small', { contextWindow: 200 });
    const large = newBackend('large', { contextWindow: 800 });
    const one = plannerOf(
      { l: { vocabulary: 'llama3', contextWindow: 1000 } },
      { l: [small, large] },
    );
    assert.deepEqual([...(await one.plan('l', chat(words(100)))).unfit], []);
    assert.deepEqual([...(await one.plan('l', chat(words(400)))).unfit], [small]);
    await assert.rejects(
      one.plan('l', chat(words(900))),
      refusal('context_length_exceeded', /context length is 800 tokens/),
    );
  });

  it('the output cap is the default, and more is refused', async () => {
    const one = plannerOf({ m: { maxOutputTokens: 256 } }, { m: [newBackend('a')] });
    assert.equal((await one.plan('m', chat('x'))).task.body.max_tokens, 256);
    const fewer = await one.plan('m', chat('x', { max_completion_tokens: 5 }));
    assert.equal(fewer.task.body.max_tokens, undefined);
    await assert.rejects(
      one.plan('m', chat('x', { max_completion_tokens: 257 })),
      refusal('integer_above_max_value', /max_completion_tokens is 257.*is 256/),
    );
  });

  it('content other than text goes to upstreams, and is refused if there are none', async () => {
    const upstream = newBackend('upstream');
    const weights = newBackend('weights', { kind: 'weights' });
    const one = plannerOf({ m: {}, local: {} }, { m: [weights, upstream], local: [weights] });
    const picture = chat([
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', ...{ image_url: { url: 'data:image/png;base64,AA' } } },
    ]);
    assert.deepEqual([...(await one.plan('m', picture)).unfit], [weights]);
    await assert.rejects(
      one.plan('local', picture),
      refusal('unsupported_content_type', /^messages\[0\]\.content\[1\] is of type "image_url"/),
    );
    const { task } = await one.plan('local', { ...picture, describesMedia: true } as Task);
    assert.match(JSON.stringify(task.body), /What is this\?.*this model takes only text/);
    const middle: Task = { kind: 'completion', body: { model: 'm', prompt: 'a', suffix: 'c' } };
    assert.deepEqual([...(await one.plan('m', middle)).unfit], [weights]);
    assert.deepEqual([...(await one.plan('local', middle)).unfit], []);
  });

  it('reduces a maximum that does not fit, if the API or the model says so', async () => {
    const { backend } = countingBackend('a', async () => 300);
    const small = countingBackend('b', async () => 300, { contextWindow: 500 }).backend;
    const models = {
      m: { contextWindow: 1000 },
      fitting: { contextWindow: 1000, fitMaxTokens: true },
      capped: { contextWindow: 1000, maxOutputTokens: 200, fitMaxTokens: true },
    };
    const all = { m: [backend, small], fitting: [backend], capped: [backend] };
    const { plan } = plannerOf(models, all);
    const asked = chat('hi', { max_tokens: 32_000 });
    await assert.rejects(plan('m', asked), refusal('context_length_exceeded', /32000/));
    const agent = await plan('m', { ...asked, fitsMaximum: true } as Task);
    assert.equal(agent.task.body.max_tokens, 700);
    assert.deepEqual([...agent.unfit], [small]);
    assert.equal((await plan('fitting', asked)).task.body.max_tokens, 700);
    const both = chat('hi', { max_tokens: 5_000, max_completion_tokens: 4_000 });
    const { body } = (await plan('capped', both)).task;
    assert.deepEqual(body, { ...both.body, max_tokens: 200, max_completion_tokens: 200 });
    const fits = chat('hi', { max_tokens: 100 });
    assert.equal((await plan('fitting', fits)).task, fits);
  });

  it('refuses a prompt that leaves no room, whatever may be reduced', async () => {
    const { backend } = countingBackend('a', async () => 1000);
    const { plan } = plannerOf(
      { m: { contextWindow: 1000, fitMaxTokens: true } },
      { m: [backend] },
    );
    const asked = chat('hi', { max_tokens: 32_000 });
    await assert.rejects(
      plan('m', asked),
      refusal('context_length_exceeded', /1000 and at least 1/),
    );
  });

  it('leaves a maximum to the backend if the length of the prompt is unknown', async () => {
    const { backend } = countingBackend('a', async () => null);
    const { plan } = plannerOf(
      { m: { contextWindow: 1000, fitMaxTokens: true } },
      { m: [backend] },
    );
    const { task } = await plan('m', chat(words(300), { max_tokens: 32_000 }));
    assert.equal(task.body.max_tokens, null);
  });

  it('opens a thought only where the template does', async () => {
    const { backend } = countingBackend('a', async () => 1);
    const models = { m: { thinkTags: 'opened' }, k: { thinkTags: 'keep' } } as const;
    const { plan } = plannerOf(models, { m: [backend], k: [backend] });
    const tagsOf = async (id: string, task: Task) => {
      const planned = (await plan(id, task)).task;
      return planned.kind === 'chat' ? planned.thinkTags : null;
    };
    assert.equal(await tagsOf('m', chat('hi')), 'opened');
    assert.equal(await tagsOf('k', chat('hi')), 'keep');
    const off = chat('hi');
    Object.assign(off.body, { chat_template_kwargs: { enable_thinking: false } });
    assert.equal(await tagsOf('m', off), undefined);
    assert.equal(await tagsOf('m', chat('hi', { continue_final_message: true })), undefined);
  });
});
