// What leaves the local engine: stop strings, whole characters, scores, grammars and tool calls.

import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import type { EngineError } from '#inference/engine.ts';
import { findStop } from '#inference/engines/local/child/output/stop-strings.ts';
import type { ChatChoiceDelta } from '#inference/wire/response.ts';
import {
  call,
  chat,
  chatOf,
  collect,
  completionOf,
  createBuiltin,
  toMessages,
  weatherTool,
} from '#test/support/builtin.ts';

const engine = createBuiltin();
describe('the output of a local engine', () => {
  after(() => engine.close());

  describe('an end', () => {
    test('by a stop string is where it is in the whole text', async () => {
      const body = { prompt: 'Once upon a time', max_tokens: 60 };
      const whole = (await completionOf(engine, body)).choices[0]?.text ?? '';
      let seed = 42;
      const random = (below: number) => {
        seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
        return seed % below;
      };
      await Promise.all(
        Array.from({ length: 12 }, async (_, round) => {
          const stop = Array.from({ length: 1 + random(3) }, () => {
            const start = random(whole.length - 8);
            return whole.slice(start, start + 1 + random(7));
          });
          const expected = findStop(whole, 0, stop);
          assert.ok(expected);
          const include = round % 2 === 0;
          const { choices } = await completionOf(engine, {
            ...body,
            stop,
            include_stop_str_in_output: include,
          });
          assert.equal(choices[0]?.text, whole.slice(0, include ? expected.end : expected.start));
          assert.equal(choices[0]?.stop_reason, expected.stop);
          assert.equal(choices[0]?.finish_reason, 'stop');
        }),
      );
    });

    test('of a chat names the stop string, whole and streamed', async () => {
      const [first = ''] = (
        await chatOf(engine, { messages: toMessages('Hello!'), max_tokens: 20 })
      ).choices.map(({ message }) => message.content?.trim().split(' ')[1]);
      const { choices } = await chatOf(engine, { messages: toMessages('Hello!'), stop: [first] });
      assert.equal(choices[0]?.finish_reason, 'stop');
      assert.equal(choices[0]?.stop_reason, first);
    });

    test('by a stop token names it, a natural end is null, and a limit is length', async () => {
      const scored = await completionOf(engine, {
        prompt: 'The sky is blue',
        prompt_logprobs: 0,
        max_tokens: 1,
      });
      const blue = Number(Object.keys(scored.choices[0]?.prompt_logprobs?.at(-1) ?? {})[0]);
      const stopped = await completionOf(engine, { prompt: 'The sky is', stop_token_ids: [blue] });
      assert.equal(stopped.choices[0]?.stop_reason, blue);
      assert.equal(stopped.choices[0]?.text, '');
      const natural = await completionOf(engine, { prompt: 'The capital of France is' });
      assert.equal(natural.choices[0]?.finish_reason, 'stop');
      assert.equal(natural.choices[0]?.stop_reason, null);
      const cut = await completionOf(engine, { prompt: 'The sky is', max_tokens: 3 });
      assert.equal(cut.choices[0]?.finish_reason, 'length');
      assert.equal(cut.usage.completion_tokens, 3);
    });

    test('does not come before min_tokens, nor at all if the end token is ignored', async () => {
      const body = { messages: toMessages('Hello!'), max_tokens: 50 };
      const short = await chatOf(engine, body);
      assert.ok(short.usage.completion_tokens < 30);
      const longer = await chatOf(engine, { ...body, min_tokens: 30 });
      assert.ok(longer.usage.completion_tokens >= 30);
      const endless = await chatOf(engine, { ...body, ignore_eos: true });
      assert.equal(endless.usage.completion_tokens, 50);
      assert.equal(endless.choices[0]?.finish_reason, 'length');
      const late = await completionOf(engine, {
        prompt: 'The sky is',
        stop: [' blue'],
        min_tokens: 3,
        max_tokens: 30,
      });
      assert.ok(late.choices[0]?.text.startsWith(' blue. The'));
    });
  });

  describe('text', () => {
    test('is never cut inside a character', async () => {
      const text = 'naïve 日本語 👩‍👩‍👧 🇫🇷 \ufeff ok';
      const scored = await completionOf(engine, {
        prompt: text,
        prompt_logprobs: 0,
        max_tokens: 1,
      });
      const ids = (scored.choices[0]?.prompt_logprobs ?? []).flatMap((entry) =>
        Object.keys(entry ?? {}).map(Number),
      );
      const echoed = await completionOf(engine, { prompt: ids, echo: true, max_tokens: 1 });
      assert.ok(echoed.choices[0]?.text.startsWith(text));
      assert.ok(ids.length > text.length);
    });

    test('made of single bytes waits for the whole character', async () => {
      const text = '日本語 👩‍👩‍👧 ok';
      const task = chat({
        messages: toMessages('Hi'),
        response_format: toFormat(`root ::= "${text}"`),
        stop: ['👧 never'],
      });
      const chunks = await collect(await engine.stream(task, call()));
      const parts = chunks
        .flatMap(({ choices }) => choices as ChatChoiceDelta[])
        .map(({ delta }) => delta.content ?? '');
      assert.equal(parts.join(''), text);
      assert.ok(parts.every((part) => part.isWellFormed() && !part.includes('\ufffd')));
      assert.ok((chunks.at(-1)?.usage?.completion_tokens ?? 0) > [...text].length);
    });
  });

  describe('scores', () => {
    test('of a chat are log-probabilities, the chosen token among the alternatives', async () => {
      const { choices, usage } = await chatOf(engine, {
        messages: toMessages('What is the capital of France?'),
        logprobs: true,
        top_logprobs: 5,
      });
      const content = choices[0]?.logprobs?.content ?? [];
      assert.equal(content.length, usage.completion_tokens - 1);
      assert.equal(content.map(({ token }) => token).join(''), choices[0]?.message.content);
      for (const entry of content) {
        assert.equal(entry.top_logprobs.length, 5);
        const total = entry.top_logprobs.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0);
        assert.ok(total <= 1.0001 && total > 0);
        assert.deepEqual(entry.top_logprobs[0]?.logprob, entry.logprob);
        assert.deepEqual(entry.bytes, [...Buffer.from(entry.token)]);
      }
    });

    test('are those of the model, whatever temperature and filters choose', async () => {
      const body = { prompt: 'The sky is', max_tokens: 1, logprobs: 5 };
      const plain = (await completionOf(engine, body)).choices[0]?.logprobs;
      const hot = (await completionOf(engine, { ...body, temperature: 2, top_k: 3, seed: 4 }))
        .choices[0]?.logprobs;
      const names = Object.keys(plain?.top_logprobs?.[0] ?? {});
      assert.equal(names.length, 5);
      for (const name of names)
        assert.equal(hot?.top_logprobs?.[0]?.[name], plain?.top_logprobs?.[0]?.[name]);
    });

    test('of an echoed prompt agree with those of the same text generated', async () => {
      const generated = await completionOf(engine, {
        prompt: 'The sky is',
        max_tokens: 4,
        logprobs: 1,
      });
      const own = generated.choices[0];
      const echoed = await completionOf(engine, {
        prompt: `The sky is${own?.text}`,
        echo: true,
        logprobs: 1,
        max_tokens: 1,
      });
      const choice = echoed.choices[0];
      const logprobs = choice?.logprobs;
      assert.equal(logprobs?.token_logprobs[0], null);
      assert.equal(logprobs?.tokens.join(''), choice?.text);
      assert.equal(logprobs?.tokens.length, logprobs?.text_offset.length);
      for (const [at, token] of (logprobs?.tokens ?? []).entries()) {
        const offset: number = logprobs?.text_offset[at] ?? -1;
        assert.equal(choice?.text.slice(offset, offset + token.length), token);
      }
      for (const [at, logprob] of (own?.logprobs?.token_logprobs ?? []).entries()) {
        const twin: number = logprobs?.token_logprobs[3 + at] ?? 0;
        assert.ok(Math.abs(twin - (logprob ?? 0)) < 0.1, `${twin} ${logprob}`);
      }
    });

    test('of a text beyond the basic plane are placed by code points, echoed and generated', async () => {
      const { choices } = await completionOf(engine, {
        prompt: '👩 🇫🇷 The sky is blue. The sky is',
        echo: true,
        logprobs: 0,
        max_tokens: 3,
      });
      const points = [...(choices[0]?.text ?? '')];
      const { tokens, text_offset } = choices[0]?.logprobs ?? { tokens: [], text_offset: [] };
      const whole = tokens.flatMap((token, at) => (token.startsWith('bytes:') ? [] : [at]));
      assert.ok(whole.length > 5 && whole.length < tokens.length);
      for (const at of whole) {
        const [token, offset] = [tokens[at] ?? '', text_offset[at] ?? -1];
        assert.equal(points.slice(offset, offset + [...token].length).join(''), token);
      }
    });

    test('of an echoed prompt need no generated token', async () => {
      const body = { prompt: ['The sky is blue', 'Once'], echo: true, logprobs: 1, n: 2 };
      const some = await completionOf(engine, { ...body, max_tokens: 1 });
      const none = await completionOf(engine, { ...body, max_tokens: 0 });
      assert.equal(none.usage.completion_tokens, 0);
      assert.equal(none.usage.prompt_tokens, some.usage.prompt_tokens);
      for (const [at, { text, finish_reason, logprobs }] of none.choices.entries()) {
        assert.equal(text, body.prompt[Math.floor(at / 2)]);
        assert.equal(finish_reason, 'length');
        assert.equal(logprobs?.tokens.join(''), text);
        const expected = some.choices[at]?.logprobs?.token_logprobs.slice(0, -1);
        assert.deepEqual(logprobs?.token_logprobs, expected);
      }
    });

    test('of a prompt name the token, its rank and the likeliest instead', async () => {
      const { choices } = await completionOf(engine, {
        prompt: 'The sky is blue',
        prompt_logprobs: 2,
        max_tokens: 1,
      });
      const entries = choices[0]?.prompt_logprobs ?? [];
      assert.equal(entries[0], null);
      const last = Object.values(entries.at(-1) ?? {});
      assert.ok(last.some(({ decoded_token, rank }) => decoded_token === ' blue' && rank === 1));
      for (const entry of entries.slice(1)) {
        const ranks = Object.values(entry ?? {}).map(({ rank }) => rank);
        assert.ok(ranks.includes(1) && ranks.includes(2) && ranks.length <= 3);
      }
    });
  });

  describe('a grammar', () => {
    test('constrains the response', async () => {
      const { choices } = await chatOf(engine, {
        messages: toMessages('Is water wet?'),
        temperature: 1,
        response_format: { type: 'json_schema', json_schema: { name: 'truth', schema: {} } },
      });
      assert.equal(typeof JSON.parse(choices[0]?.message.content ?? '').answer, 'boolean');
      assert.equal(choices[0]?.finish_reason, 'stop');
    });

    test("that can't be built is the request's fault", async () => {
      await assert.rejects(
        engine.respond(
          chat({ messages: toMessages('Hi'), response_format: toFormat('root ::= (') }),
          call(),
        ),
        (error: EngineError) => error.failure === 'rejected' && error.param === 'response_format',
      );
    });
  });

  describe('a tool call', () => {
    const body = { messages: toMessages('What is the weather in Paris?'), tools: [weatherTool] };

    test('is found when the model makes one by itself', async () => {
      const { choices } = await chatOf(engine, body);
      const [choice] = choices;
      assert.equal(choice?.finish_reason, 'tool_calls');
      assert.equal(choice?.message.content, null);
      const [made] = choice?.message.tool_calls ?? [];
      assert.match(made?.id ?? '', /^call_[A-Za-z0-9]{24}$/);
      assert.equal(made?.function.name, 'get_weather');
      assert.deepEqual(JSON.parse(made?.function.arguments ?? ''), { city: 'Paris' });
    });

    test('streams its name first and its arguments after, in pieces that join to JSON', async () => {
      const chunks = await collect(await engine.stream(chat(body), call()));
      const made = chunks
        .flatMap(({ choices }) => choices as ChatChoiceDelta[])
        .flatMap(({ delta }) => (delta.tool_calls === undefined ? [] : [delta.tool_calls]));
      assert.ok(made.every(({ length }) => length === 1));
      const deltas = made.flat();
      assert.deepEqual(
        { ...deltas[0], id: null },
        { index: 0, id: null, type: 'function', function: { name: 'get_weather', arguments: '' } },
      );
      assert.ok(deltas.slice(1).every(({ id, type }) => id === undefined && type === undefined));
      const text = deltas.map(({ function: part }) => part.arguments).join('');
      assert.deepEqual(JSON.parse(text), { city: 'Paris' });
    });

    test('is forced by required or a name, and never made with none', async () => {
      const other = { ...body, messages: toMessages('Hello!') };
      for (const tool_choice of [
        'required' as const,
        { type: 'function' as const, function: { name: 'get_weather' } },
      ]) {
        const { choices } = await chatOf(engine, { ...other, tool_choice });
        assert.equal(choices[0]?.finish_reason, 'tool_calls');
        for (const made of choices[0]?.message.tool_calls ?? [])
          assert.equal(typeof JSON.parse(made.function.arguments).city, 'string');
      }
      const none = await chatOf(engine, { ...body, tool_choice: 'none' });
      assert.equal(none.choices[0]?.message.tool_calls, null);
      assert.equal(none.choices[0]?.finish_reason, 'stop');
    });

    test('is not cut by a stop string, forced or not', async () => {
      for (const tool_choice of ['auto', 'required'] as const)
        for (const stop of ['"', 'P', 'city', '}', ['>never', '{"', ':']]) {
          const { choices } = await chatOf(engine, { ...body, tool_choice, stop });
          const [made] = choices[0]?.message.tool_calls ?? [];
          assert.equal(choices[0]?.finish_reason, 'tool_calls');
          assert.deepEqual(JSON.parse(made?.function.arguments ?? ''), { city: 'Paris' });
        }
      const { choices } = await chatOf(engine, { ...body, tool_choice: 'auto', stop: '<tool' });
      assert.equal(choices[0]?.message.tool_calls, null);
    });

    test('of a tool that was not offered is refused', async () => {
      const tool_choice = { type: 'function' as const, function: { name: 'launch' } };
      await assert.rejects(
        engine.respond(chat({ ...body, tool_choice }), call()),
        (error: EngineError) =>
          error.failure === 'rejected' && /tool_choice/.test(error.param ?? ''),
      );
    });

    test('and its result can be sent back as messages', async () => {
      const { choices } = await chatOf(engine, {
        tools: [weatherTool],
        messages: [
          ...body.messages,
          {
            role: 'assistant',
            content: null,
            tool_calls: [
              {
                id: 'call_1',
                type: 'function',
                function: { name: 'get_weather', arguments: '{"city": "Paris"}' },
              },
            ],
          },
          { role: 'tool', tool_call_id: 'call_1', content: '{"weather": "sunny"}' },
        ],
      });
      assert.match(choices[0]?.message.content ?? '', /sunny/i);
    });
  });

  function toFormat(gbnf: string) {
    return { type: 'json_schema' as const, json_schema: { name: 'given', schema: { gbnf } } };
  }
});
