// The local engine at its boundary, with the real built-in model: what it samples and how it ends.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { EngineError } from '#inference/engine.ts';
import { foldChunks } from '#inference/wire/fold.ts';
import {
  call,
  chat,
  chatOf,
  collect,
  completion,
  completionOf,
  createBuiltin,
  toMessages,
} from '#test/support/builtin.ts';

const engine = createBuiltin();
describe('a local engine', () => {
  after(() => engine.close());

  const story = 'Tell me a story about a brave little mouse.';

  describe('an answer', () => {
    test('is from the model, with exact usage', async () => {
      const { choices, usage } = await chatOf(engine, 'What is the capital of France?');
      assert.equal(choices[0]?.message.content, 'The capital of France is Paris.');
      assert.equal(choices[0]?.finish_reason, 'stop');
      assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
      const counted = await engine.countPromptTokens(
        chat('What is the capital of France?'),
        new AbortController().signal,
      );
      assert.equal(usage.prompt_tokens, counted);
    });

    test('has the same text and totals streamed and plain', async () => {
      for (const task of [
        chat({ messages: toMessages(story), max_tokens: 30, n: 2 }),
        completion({
          prompt: ['Once upon', 'The sky'],
          n: 2,
          seed: 5,
          temperature: 1,
          max_tokens: 9,
        }),
        completion({ prompt: 'Once', echo: true, logprobs: 2, max_tokens: 5 }),
      ]) {
        const plain = await engine.respond(task, call());
        const chunks = await collect(await engine.stream(task, call()));
        const folded = foldChunks(task.kind, chunks);
        assert.deepEqual(folded.choices, plain.choices);
        assert.equal(folded.usage.total_tokens, plain.usage.total_tokens);
        const last = chunks.at(-1);
        assert.deepEqual(last?.choices, []);
        assert.notEqual(last?.usage, null);
      }
    });

    test('of a chat streams the role first and the finish reason last, for every choice', async () => {
      const chunks = await collect(
        await engine.stream(chat({ messages: toMessages('Hello!'), n: 2 }), call()),
      );
      for (const index of [0, 1]) {
        const own = chunks.flatMap(({ choices }) => choices.filter((it) => it.index === index));
        assert.deepEqual(own[0], {
          index,
          delta: { role: 'assistant', content: '' },
          logprobs: null,
          finish_reason: null,
        });
        assert.deepEqual(own.at(-1), { index, delta: {}, logprobs: null, finish_reason: 'stop' });
        assert.ok(own.slice(0, -1).every(({ finish_reason }) => finish_reason === null));
      }
    });

    test('reports the counts so far while it is generated', async () => {
      const seen: number[] = [];
      const onUsage = (usage: { completion_tokens: number }) => seen.push(usage.completion_tokens);
      const answer = await engine.respond(
        chat({ messages: toMessages(story), max_tokens: 12 }),
        call({ onUsage }),
      );
      assert.equal(seen.at(-1), answer.usage.completion_tokens);
      assert.deepEqual(
        seen,
        seen.toSorted((a, b) => a - b),
      );
      assert.ok(seen.length > 10);
    });
  });

  describe('usage', () => {
    test('of best_of candidates is reported while they are held back, even if the client leaves', async () => {
      const seen: number[] = [];
      const controller = new AbortController();
      const onUsage = (usage: { completion_tokens: number }) => {
        seen.push(usage.completion_tokens);
        if (usage.completion_tokens > 20) controller.abort(new Error('left'));
      };
      const task = completion({ best_of: 4, temperature: 1, ignore_eos: true, max_tokens: 400 });
      await assert.rejects(
        engine.respond(task, call({ onUsage, signal: controller.signal })),
        /left/,
      );
      assert.ok(seen.length > 1 && (seen.at(-1) ?? 0) < 400, String(seen));
      assert.deepEqual(
        seen,
        seen.toSorted((a, b) => a - b),
      );
    });

    test('counts tokens whose text waits for a stop string', async () => {
      const seen: number[] = [];
      const onUsage = (usage: { completion_tokens: number }) => seen.push(usage.completion_tokens);
      const whole = (await completionOf(engine, { max_tokens: 8 })).choices[0]?.text ?? '';
      const task = completion({ max_tokens: 8, stop: `${whole}never` });
      await engine.respond(task, call({ onUsage }));
      assert.ok(seen.includes(4), String(seen));
    });
  });

  describe('sampling', () => {
    test('at temperature 0 is deterministic, alone, from the cache and beside others', async () => {
      const ask = () => chatOf(engine, { messages: toMessages(story), max_tokens: 60 });
      const alone = (await ask()).choices[0]?.message.content;
      const cached = await ask();
      assert.ok((cached.usage.prompt_tokens_details?.cached_tokens ?? 0) > 5);
      assert.equal(cached.choices[0]?.message.content, alone);
      const others = Array.from({ length: 9 }, (_, at) =>
        completionOf(engine, { prompt: `Number ${at} `.repeat(10 + at * 9), max_tokens: 20 + at }),
      );
      const among = await Promise.all([ask(), ask(), ...others]);
      assert.equal(
        (among[0] as Awaited<ReturnType<typeof ask>>).choices[0]?.message.content,
        alone,
      );
      assert.equal(
        (among[1] as Awaited<ReturnType<typeof ask>>).choices[0]?.message.content,
        alone,
      );
    });

    test('with a seed is deterministic, and choices of one request differ', async () => {
      const body = { prompt: 'My favourite', seed: 7, temperature: 1.2, n: 3, max_tokens: 16 };
      const first = (await completionOf(engine, body)).choices.map(({ text }) => text);
      const second = (await completionOf(engine, body)).choices.map(({ text }) => text);
      assert.deepEqual(first, second);
      assert.equal(new Set(first).size, 3);
      const third = await completionOf(engine, { ...body, seed: 8, n: 1 });
      assert.equal(third.choices[0]?.text, first[1]);
    });

    test('accepts 64-bit seeds, and its choices differ there too', async () => {
      const body = { prompt: 'My favourite', temperature: 1.2, n: 3, max_tokens: 16 };
      for (const seed of [2 ** 63, -(2 ** 63)]) {
        const first = (await completionOf(engine, { ...body, seed })).choices.map((it) => it.text);
        const again = (await completionOf(engine, { ...body, seed })).choices.map((it) => it.text);
        assert.deepEqual(again, first);
        assert.equal(new Set(first).size, 3);
      }
    });

    test('without a seed varies', async () => {
      const body = { prompt: 'My favourite', temperature: 1.5, n: 4, max_tokens: 12 };
      const { choices } = await completionOf(engine, body);
      assert.ok(new Set(choices.map(({ text }) => text)).size > 1);
    });

    test('with top_k 1, a tiny top_p or a high min_p is greedy at any temperature', async () => {
      const greedy = (await completionOf(engine, { prompt: 'One two', max_tokens: 12 })).choices[0];
      for (const rule of [{ top_k: 1 }, { top_p: 0.0001 }, { min_p: 1 }]) {
        const body = { prompt: 'One two', max_tokens: 12, temperature: 1.8, ...rule };
        assert.equal((await completionOf(engine, body)).choices[0]?.text, greedy?.text);
      }
    });

    test('follows a logit bias, and refuses one on a token that does not exist', async () => {
      const scored = await completionOf(engine, {
        prompt: 'The sky is blue',
        prompt_logprobs: 0,
        max_tokens: 1,
      });
      const blue = Object.keys(scored.choices[0]?.prompt_logprobs?.at(-1) ?? {})[0] ?? '';
      const body = { prompt: 'The sky is', max_tokens: 1 };
      assert.equal((await completionOf(engine, body)).choices[0]?.text, ' blue');
      const banned = await completionOf(engine, { ...body, logit_bias: { [blue]: -100 } });
      assert.notEqual(banned.choices[0]?.text, ' blue');
      const forced = await completionOf(engine, {
        prompt: 'Hello',
        max_tokens: 3,
        logit_bias: { [blue]: 100 },
      });
      assert.equal(forced.choices[0]?.text, ' blue blue blue');
      await assert.rejects(
        engine.respond(completion({ logit_bias: { 999999: 1 } }), call()),
        (error: EngineError) => error.failure === 'rejected' && error.param === 'logit_bias',
      );
    });

    test('refuses stop tokens that do not exist', async () => {
      await assert.rejects(
        engine.respond(completion({ stop_token_ids: [5, 8192] }), call()),
        (error: EngineError) =>
          error.failure === 'rejected' &&
          error.code === 'invalid_value' &&
          error.param === 'stop_token_ids',
      );
    });

    test('repeats less with each of the three penalties', async () => {
      const body = { prompt: 'The sky is', max_tokens: 40 };
      const plain = (await completionOf(engine, body)).choices[0]?.text ?? '';
      assert.ok(repeats(plain) > 4, plain);
      for (const rule of [
        { frequency_penalty: 2 },
        { presence_penalty: 2 },
        { repetition_penalty: 1.6 },
      ]) {
        const text = (await completionOf(engine, { ...body, ...rule })).choices[0]?.text ?? '';
        assert.ok(repeats(text) < repeats(plain), JSON.stringify(rule) + text);
      }
    });

    test('of best_of candidates returns the likeliest', async () => {
      const body = { prompt: 'My favourite', seed: 11, temperature: 1.5, max_tokens: 8 };
      const all = await completionOf(engine, { ...body, n: 4, logprobs: 0 });
      const mean = (choice: (typeof all.choices)[number]) =>
        (choice.logprobs?.token_logprobs ?? []).reduce<number>((sum, it) => sum + (it ?? 0), 0) /
        (choice.logprobs?.token_logprobs.length ?? 1);
      const best = all.choices.toSorted((a, b) => mean(b) - mean(a));
      const chosen = await completionOf(engine, { ...body, n: 2, best_of: 4 });
      assert.deepEqual(
        chosen.choices.map(({ text }) => text),
        best.slice(0, 2).map(({ text }) => text),
      );
      assert.deepEqual(
        chosen.choices.map(({ index }) => index),
        [0, 1],
      );
      assert.equal(chosen.usage.completion_tokens, all.usage.completion_tokens);
    });
  });

  /** The longest run of words that come back. */
  function repeats(text: string): number {
    const words = text.split(/\W+/);
    return words.length - new Set(words).size;
  }
});
