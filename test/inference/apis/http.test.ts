// The inference API over HTTP with the real built-in model: shapes, streams, the fallback rule, and what
// happens when a client leaves.

import assert from 'node:assert';
import { before, describe, test } from 'node:test';
import { assertShape, parseEvents } from '#test/support/openai-shapes.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

interface Answer {
  model: string;
  choices: { text: string; finish_reason: string; message: { content: string } }[];
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

/** From the first event. The prompt need not be read to its end for that. */
async function readModel(response: Response): Promise<string> {
  assert(response.status === 200 && response.body, await response.clone().text());
  const reader = response.body.getReader();
  const { value } = await reader.read();
  await reader.cancel();
  const [event] = Buffer.from(value ?? [])
    .toString()
    .split('\n\n');
  return (JSON.parse(event?.slice('data: '.length) ?? '') as Answer).model;
}

const question = [{ role: 'user', content: 'What is the capital of France?' }];

describe('inference over HTTP', () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer({ config: { inference: { queue: { length: 64 } } } });
  });

  const chat = (body: object, init = {}) =>
    server.fetch('/v1/chat/completions', {
      json: { model: 'llama3.1-8b-instruct', messages: question, temperature: 0, ...body },
      ...init,
    });
  const complete = (body: object, init = {}) =>
    server.fetch('/v1/completions', {
      json: { model: 'llama3.1-8b-instruct', prompt: 'Once upon a time', temperature: 0, ...body },
      ...init,
    });

  test('a chat response has every member of the contract, nulls included', async () => {
    const response = await chat({});
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('x-served-by'), 'builtin');
    assert.match(response.headers.get('x-overhead-ms') ?? '', /^\d+\.\d\d$/);
    assert.match(response.headers.get('openai-processing-ms') ?? '', /^\d+$/);
    const answer = (await response.json()) as Answer & Record<string, unknown>;
    assertShape('chat', answer);
    assert.equal(answer.model, 'llama3.1-8b-instruct');
    assert.equal(answer.choices[0]?.message.content, 'The capital of France is Paris.');
    for (const member of ['system_fingerprint', 'service_tier']) assert.equal(answer[member], null);
  });

  test('a completion has the contract’s members, and no limit of 16 tokens', async () => {
    const response = await complete({ max_tokens: undefined, min_tokens: 40, stop: '.' });
    const answer = (await response.json()) as Answer;
    assertShape('completion', answer);
    assert(answer.usage.completion_tokens > 40);
    const short = (await (await complete({ max_tokens: 3 })).json()) as Answer;
    assert.equal(short.choices[0]?.finish_reason, 'length');
    assert.equal(short.usage.completion_tokens, 3);
  });

  test('each of the twelve models and the fallback responds', async () => {
    const list = (await (await server.fetch('/v1/models')).json()) as { data: { id: string }[] };
    const ids = [...list.data.map(({ id }) => id), 'hermes-3-llama-3.1-405b-fp8-128k'];
    for (const model of ids) {
      const answer = (await (await chat({ model, max_tokens: 4 })).json()) as Answer;
      assert.equal(answer.model, model);
      assert(answer.usage.completion_tokens > 0);
    }
    assert.equal(ids.length, 13);
  });

  test('a stream has the contract’s headers and events, and the same text and totals as the plain response', async () => {
    for (const [kind, ask, shape] of [
      ['chat', chat, 'chatChunk'],
      ['completion', complete, 'completion'],
    ] as const) {
      const plain = (await (await ask({ max_tokens: 30 })).json()) as Answer;
      const response = await ask({
        max_tokens: 30,
        stream: true,
        stream_options: { include_usage: true },
      });
      assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/);
      assert.equal(response.headers.get('cache-control'), 'no-cache, no-store');
      assert.equal(response.headers.get('x-accel-buffering'), 'no');
      const events = parseEvents(await response.text()) as {
        id: string;
        created: number;
        model: string;
        usage: unknown;
        choices: {
          text?: string;
          delta?: { content?: string; role?: string };
          finish_reason: string | null;
        }[];
      }[];
      for (const event of events) assertShape(shape, event);
      assert.equal(
        new Set(events.map(({ id, created, model }) => `${id}${created}${model}`)).size,
        1,
      );
      const words = events.map(
        ({ choices: [choice] }) => choice?.delta?.content ?? choice?.text ?? '',
      );
      const said = plain.choices[0]?.message?.content ?? plain.choices[0]?.text;
      assert.equal(words.join(''), said, kind);
      const last = events.at(-1);
      assert.deepEqual(last?.choices, []);
      const totals = last?.usage as Answer['usage'] | null | undefined;
      assert.equal(totals?.total_tokens, plain.usage.total_tokens);
      assert(events.slice(0, -1).every(({ usage }) => usage === null));
      const finishes = events.flatMap(({ choices }) => choices.map((one) => one.finish_reason));
      assert.equal(finishes.filter((reason) => reason !== null).length, 1);
    }
  });

  test('without include_usage no event has usage; with continuous_usage_stats every one does', async () => {
    const silent = await (await chat({ stream: true, max_tokens: 5 })).text();
    assert(!silent.includes('"usage"'));
    const stats = { include_usage: true, continuous_usage_stats: true };
    const spoken = await chat({ stream: true, max_tokens: 5, stream_options: stats });
    const events = parseEvents(await spoken.text()) as { usage: Answer['usage'] | null }[];
    const counts = events.map(({ usage }) => usage?.completion_tokens);
    assert(
      counts.every((count) => count !== undefined),
      JSON.stringify(counts),
    );
    assert.equal(counts[0], 0);
    assert.deepEqual(
      counts.slice(0, 4),
      [0, 1, 2, 3],
      'each event has the counts of its own text, even if several are sent at once',
    );
    assert.deepEqual(
      counts,
      counts.toSorted((a, b) => (a ?? 0) - (b ?? 0)),
    );
  });

  test('nulls mean not given, and unknown members are accepted', async () => {
    const nulls = {
      max_tokens: null,
      temperature: null,
      top_p: null,
      stop: null,
      n: null,
      seed: null,
      stream: null,
      stream_options: null,
      tools: null,
      tool_choice: null,
      response_format: null,
      logprobs: null,
      logit_bias: null,
      user: null,
      some_extra: { a: [1] },
    };
    const response = await chat(nulls);
    assert.equal(response.status, 200, await response.clone().text());
  });

  test('hermes3-405b over 18K is served by its fallback, by a real count', async () => {
    const word = 'river ';
    const ask = (words: number, more = {}) => {
      const messages = [{ role: 'user', content: word.repeat(words) }];
      return chat({ model: 'hermes3-405b', messages, max_tokens: 2, ...more });
    };
    const servedBy = async (words: number, more = {}) =>
      readModel(await ask(words, { stream: true, ...more }));
    const long = (await (await ask(18_500)).json()) as Answer;
    assert.equal(long.model, 'hermes-3-llama-3.1-405b-fp8-128k');
    assert(long.usage.prompt_tokens >= 18_500, `${long.usage.prompt_tokens}`);
    // 17,900 tokens are 107,400 bytes: the bytes alone would say over, the count says under.
    assert.equal(await servedBy(17_900), 'hermes3-405b');
    // What was asked for counts too.
    assert.equal(await servedBy(17_900, { max_tokens: 100 }), 'hermes-3-llama-3.1-405b-fp8-128k');
    assert.equal(await servedBy(10), 'hermes3-405b');
  });

  test('the 18K rule counts the prompt and completion exactly', async () => {
    const ask = async (prompt: unknown, max_tokens: number) =>
      readModel(await complete({ model: 'hermes3-405b', prompt, max_tokens, stream: true }));
    const ids = (count: number) => Array.from({ length: count }, () => 400);
    assert.equal(await ask(ids(17_998), 2), 'hermes3-405b');
    assert.equal(await ask(ids(17_999), 2), 'hermes-3-llama-3.1-405b-fp8-128k');
    // Fewer characters, more tokens: the prompt that is longest for the engine decides.
    const prompts = ['a '.repeat(5_000), '龘靐齉'.repeat(3_000)];
    assert.equal(await ask(prompts, 1), 'hermes-3-llama-3.1-405b-fp8-128k');
  });

  test('a prompt over the model’s window is refused with the numbers', async () => {
    const messages = [{ role: 'user', content: 'river '.repeat(140_000) }];
    const response = await chat({ messages, max_tokens: 10 });
    assert.equal(response.status, 400);
    const { error } = (await response.json()) as {
      error: { code: string; param: string; message: string };
    };
    assert.deepEqual([error.code, error.param], ['context_length_exceeded', 'messages']);
    assert.match(
      error.message,
      /^This model's maximum context length is 131072 tokens; the prompt/,
    );
  });

  test('JSON by schema always validates, even from a tiny model', async () => {
    const schema = {
      type: 'object',
      properties: {
        city: { type: 'string', maxLength: 20 },
        population: { type: 'integer', minimum: 0, maximum: 99999 },
        kind: { enum: ['town', 'capital'] },
      },
      required: ['city', 'population', 'kind'],
      additionalProperties: false,
    };
    for (const temperature of [0, 1.8]) {
      const response = await chat({
        temperature,
        seed: 7,
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'city', strict: true, schema },
        },
      });
      const answer = (await response.json()) as Answer;
      assertShape('chat', answer);
      const value = JSON.parse(answer.choices[0]?.message.content ?? '');
      assert.deepEqual(Object.keys(value), ['city', 'population', 'kind']);
      assert(['town', 'capital'].includes(value.kind) && Number.isInteger(value.population));
    }
  });

  test('a schema’s maximum length holds even if the model writes invalid bytes', async () => {
    const schema = { type: 'string', maxLength: 3 };
    const response = await chat({
      // The tokens of the bytes E0 and 82: E0 82 82 passes llama.cpp as one character, and is decoded as
      // three that stand for broken bytes.
      logit_bias: { 165: 100, 233: 100 },
      response_format: { type: 'json_schema', json_schema: { name: 's', schema } },
    });
    const answer = (await response.json()) as Answer;
    const value = JSON.parse(answer.choices[0]?.message.content ?? '') as string;
    assert([...value].length <= 3 && !value.includes('\ufffd'), JSON.stringify(value));
  });

  test('a schema that can’t be enforced is refused by name', async () => {
    const schema = { type: 'object', properties: { a: { not: { type: 'string' } } } };
    const response = await chat({
      response_format: { type: 'json_schema', json_schema: { name: 'x', schema } },
    });
    assert.equal(response.status, 400);
    const { error } = (await response.json()) as { error: { message: string; param: string } };
    assert(
      error.message.includes('not') && error.param.startsWith('response_format'),
      error.message,
    );
  });

  test('a completion of zero tokens needs an echo; a chat always has some', async () => {
    const scored = await complete({ max_tokens: 0, echo: true, logprobs: 0 });
    const answer = (await scored.json()) as Answer;
    assert.equal(scored.status, 200, JSON.stringify(answer));
    assert.equal(answer.choices[0]?.text, 'Once upon a time');
    for (const response of [await complete({ max_tokens: 0 }), await chat({ max_tokens: 0 })]) {
      const { error } = (await response.json()) as { error: { code: string; param: string } };
      assert.deepEqual(
        [response.status, error.code, error.param],
        [400, 'integer_below_min_value', 'max_tokens'],
      );
    }
  });

  test('all 64 bits of a seed count', async () => {
    // The first goes the express way, the other Fastify's.
    for (const type of ['application/json', 'application/json;charset=utf-8'])
      for (const [seed, status] of [
        ['9223372036854775807', 200],
        ['-9223372036854775808', 200],
        ['9223372036854775808', 400],
        ['-9223372036854775809', 400],
        ['18446744073709551616', 400],
        ['1e18', 200],
        ['1e30', 400],
        ['1e400', 400],
        ['0.5', 400],
      ] as const) {
        const response = await server.fetch('/v1/completions', {
          method: 'POST',
          headers: { 'content-type': type },
          body: `{"model":"hermes3-8b","prompt":"Once","max_tokens":1,"seed":${seed}}`,
        });
        assert.equal(response.status, status, `${type} ${seed}`);
        await response.text();
      }
  });

  test('a stop string that can never match is refused by name', async () => {
    for (const [param, value] of [
      ['stop', ''],
      ['stop', ['end', '']],
      ['stop_token_ids', [2 ** 40]],
    ] as const)
      for (const response of [await chat({ [param]: value }), await complete({ [param]: value })]) {
        const { error } = (await response.json()) as { error: { code: string; param: string } };
        assert.deepEqual([response.status, error.code, error.param], [400, 'invalid_value', param]);
      }
  });

  test('llama-server’s own names do not change how much may be generated', async () => {
    for (const [param, more] of [
      ['n_predict', { max_tokens: 1, n_predict: 4_000 }],
      ['n_predict', { n_predict: -1 }],
      ['n_cmpl', { max_tokens: 1, n_cmpl: 8 }],
    ] as const)
      for (const response of [await chat(more), await complete(more)]) {
        const { error } = (await response.json()) as { error: { code: string; param: string } };
        assert.deepEqual(
          [response.status, error?.code, error?.param],
          [400, 'invalid_value', param],
        );
      }
    assert.equal((await chat({ max_tokens: 2, n_predict: 2, n: 1, n_cmpl: 1 })).status, 200);
  });

  test('suffix is refused: this model can’t fill in the middle', async () => {
    const response = await complete({ suffix: ' the end', max_tokens: 2 });
    const { error } = (await response.json()) as { error: { code: string; param: string } };
    assert.deepEqual(
      [response.status, error.code, error.param],
      [400, 'unsupported_parameter', 'suffix'],
    );
  });

  /** The sum of a metric's series whose labels include `label`. */
  const metric = async (name: string, label = '') => {
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    return metrics
      .split('\n')
      .filter((line) => line.startsWith(`${name}{`) && line.includes(label))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
  };
  const running = () => metric('millrace_running_sequences');
  const aborted = () =>
    metric('gen_ai_server_request_duration_seconds_count', 'millrace_outcome="aborted"');
  const generated = () => metric('gen_ai_client_token_usage_total', 'gen_ai_token_type="output"');
  const endless = { ignore_eos: true, max_tokens: 1900 };

  for (const [moment, stream] of [
    ['between chunks', true],
    ['during a plain request', false],
  ] as const) {
    test(`a client that leaves ${moment} stops the engine`, async () => {
      await until('the engine is idle', async () => (await running()) === 0);
      const before = { aborted: await aborted(), generated: await generated() };
      const leaving = new AbortController();
      const pending = chat({ ...endless, stream }, { signal: leaving.signal });
      pending.catch(() => {});
      await until('the request runs', async () => (await running()) === 1);
      if (stream) await (await pending).body?.getReader().read();
      leaving.abort();
      await until('the request is aborted', async () => (await aborted()) > before.aborted);
      await until('the engine is idle', async () => (await running()) === 0);
      const tokens = (await generated()) - before.generated;
      assert(tokens < endless.max_tokens, `all ${tokens} tokens were generated`);
    });
  }

  test('eight concurrent requests are all served, and a full queue is distinguished from a failure', async () => {
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => chat({ max_tokens: 20 }).then((response) => response.json())),
    );
    for (const answer of answers) {
      assert.equal(
        (answer as Answer).choices[0]?.message.content,
        'The capital of France is Paris.',
      );
    }
    const crowd = await Promise.all(
      Array.from({ length: 120 }, () => chat({ ...endless, max_tokens: 10 })),
    );
    const refused = crowd.filter(({ status }) => status !== 200);
    assert(refused.length > 0, 'the queue has a bound');
    for (const response of refused) {
      assert.equal(response.status, 503);
      assert(Number(response.headers.get('retry-after')) >= 1);
      const { error } = (await response.json()) as { error: { code: string; type: string } };
      assert.deepEqual(
        [error.code, error.type],
        ['server_is_overloaded', 'service_unavailable_error'],
      );
    }
  });
});
