// Embeddings, reranking and tokens over HTTP, through upstreams and by models on this machine: the openai package, which
// asks for base64, and plain requests.

import assert from 'node:assert/strict';
import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import {
  type ScriptedUpstream,
  startScriptedUpstream,
} from '#inference/engines/scripted/server.ts';
import type { Pull } from '#inference/weights/schema.ts';
import { startHub } from '#test/support/hub.ts';
import { writePoolingModel } from '#test/support/pooling-model.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

let server: TestServer;
let owner: SessionFetch;
let first: ScriptedUpstream;
let second: ScriptedUpstream;

describe('computed responses', () => {
  before(async () => {
    first = await startScriptedUpstream();
    second = await startScriptedUpstream();
    const hub = await startHub();
    for (const ranks of [false, true]) {
      const path = join(tmpdir(), `millrace-${process.pid}-${ranks}.gguf`);
      await writePoolingModel(path, { ranks });
      hub.add(ranks ? 'tiny/rank' : 'tiny/embed', { 'tiny-Q8_0.gguf': await readFile(path) });
      await rm(path);
    }
    const backend = (name: string, { url }: ScriptedUpstream) => ({ name, url, model: 'scripted' });
    const two = [backend('a', first), backend('b', second)];
    server = await startTestServer({
      config: {
        models: {
          hub_url: hub.url,
          disk_reserve_gib: 0,
          catalog: {
            far: { backends: two, price: { input: 1000, output: 0 } },
            'far-small': { backends: two, min_dimensions: 4, kind: 'embedding' },
            'far-rank': { backends: two, kind: 'rerank' },
            'far-ollama': { backends: [{ ...backend('c', first), server: 'ollama' }] },
            near: {},
            'near-rank': {},
          },
        } as object,
        inference: { preload: false },
      },
    });
    owner = await server.join();
    for (const [model, repo] of [
      ['near', 'tiny/embed'],
      ['near-rank', 'tiny/rank'],
    ] as const) {
      const json = { repo, file: 'tiny-Q8_0.gguf', as: model };
      const asked = await owner('/dashboard/api/weights/pulls', { json });
      assert.equal(asked.status, 202, await asked.clone().text());
      const { id } = (await asked.json()) as Pull;
      await until('the weights are pulled', async () => {
        const pull = (await (await owner(`/dashboard/api/weights/pulls/${id}`)).json()) as Pull;
        assert.equal(pull.error, null);
        return pull.state === 'done';
      });
    }
  });

  after(async () => {
    await server.stop();
    await first.close();
    await second.close();
  });

  const client = () =>
    new OpenAI({ baseURL: `${server.url}/v1`, apiKey: server.key, maxRetries: 0 });

  interface ErrorBody {
    error: { message: string; code: string; param: string | null; type: string };
  }

  async function refusal(path: string, json: object): Promise<ErrorBody['error']> {
    const response = await server.fetch(path, { json });
    assert.equal(response.status, 400, await response.clone().text());
    return ((await response.json()) as ErrorBody).error;
  }

  const post = async <Body>(path: string, json: object): Promise<Body> => {
    const response = await server.fetch(path, { json });
    assert.equal(response.status, 200, await response.clone().text());
    return (await response.json()) as Body;
  };

  const inputs = ['the red apple', 'green sky', 'the red apple'];

  for (const [model, dimensions, tokens] of [
    ['far', 8, 8],
    ['near', 32, 14],
  ] as const) {
    describe(`embeddings of ${model}`, () => {
      test('are the same as floats and as base64, in order, with exact usage', async () => {
        const packed = await client().embeddings.create({ model, input: inputs });
        const floats = await client().embeddings.create({
          model,
          input: inputs,
          encoding_format: 'float',
        });
        assert.deepEqual(packed, floats);
        assert.equal(packed.object, 'list');
        assert.equal(packed.model, model);
        assert.deepEqual(
          packed.data.map(({ index, object }) => [index, object]),
          [0, 1, 2].map((index) => [index, 'embedding']),
        );
        for (const { embedding } of packed.data) {
          assert.equal(embedding.length, dimensions);
          assert.ok(Math.abs(Math.hypot(...embedding) - 1) < 1e-5);
        }
        assert.deepEqual(packed.data[0]?.embedding, packed.data[2]?.embedding);
        assert.notDeepEqual(packed.data[0]?.embedding, packed.data[1]?.embedding);
        assert.equal(packed.usage.prompt_tokens, tokens);
        assert.equal(packed.usage.total_tokens, tokens);
      });

      test('are the same by Ollama’s client', async () => {
        const headers = { authorization: `Bearer ${server.key}` };
        const ollama = new Ollama({ host: server.url, headers });
        const { embeddings, prompt_eval_count } = await ollama.embed({
          model,
          input: ['sky', 'sea'],
        });
        const floats = { model, input: ['sky', 'sea'], encoding_format: 'float' as const };
        const { data, usage } = await client().embeddings.create(floats);
        assert.deepEqual(
          embeddings,
          data.map(({ embedding }) => embedding),
        );
        assert.equal(prompt_eval_count, usage.prompt_tokens);
        await assert.rejects(ollama.embed({ model, input: '' }), /input/);
      });

      test('take a text, token ids and lists of them', async () => {
        for (const [input, count] of [
          ['sky', 1],
          [[6, 9], 1],
          [[[6, 9], [5]], 2],
        ] as const) {
          const given = input as string | number[] | number[][];
          assert.equal(
            (await client().embeddings.create({ model, input: given })).data.length,
            count,
          );
        }
      });
    });
  }

  describe('a request for embeddings', () => {
    test('is refused if it has no sound input', async () => {
      const cases: [object, string, RegExp][] = [
        [{ input: ['a', ''] }, 'input[1]', /input\[1\] is empty/],
        [{ input: '' }, 'input', /input is empty/],
        [{ input: [] }, 'input', /./],
        [{ input: Array.from({ length: 2049 }, () => 'a') }, 'input', /at most 2048 members/],
        [{ input: ['a', 1] }, 'input', /./],
        [{ input: 'a', encoding_format: 'hex' }, 'encoding_format', /float.*base64/],
        [{ input: 'a', dimensions: 0 }, 'dimensions', /./],
      ];
      for (const [body, param, words] of cases) {
        const error = await refusal('/v1/embeddings', { model: 'far', ...body });
        assert.match(
          `${error.param}`,
          new RegExp(`^${RegExp.escape(param)}`),
          JSON.stringify(error),
        );
        assert.match(error.message, words);
      }
      assert.match((await refusal('/v1/embeddings', { model: 'far' })).message, /input/);
      const unknown = await server.fetch('/v1/embeddings', { json: { model: 'x', input: 'a' } });
      assert.equal(unknown.status, 404);
    });

    test('is cut to its dimensions if the model was made for it', async () => {
      const model = 'far-small';
      const { data } = await client().embeddings.create({ model, input: 'sky' });
      const cut = await client().embeddings.create({ model, input: 'sky', dimensions: 5 });
      const vector = cut.data[0]?.embedding ?? [];
      const beginning = data[0]?.embedding.slice(0, 5) ?? [];
      const length = Math.hypot(...beginning);
      assert.equal(vector.length, 5);
      vector.forEach((value, at) => {
        assert.ok(Math.abs(value - (beginning[at] ?? 0) / length) < 1e-6);
      });
      const small = await refusal('/v1/embeddings', { model, input: 'sky', dimensions: 3 });
      assert.equal(small.message, 'dimensions is 3; far-small has 4 to 8.');
      const whole = await refusal('/v1/embeddings', { model: 'far', input: 'sky', dimensions: 5 });
      assert.equal(whole.message, 'dimensions is 5; far has 8.');
      assert.equal(whole.param, 'dimensions');
      await client().embeddings.create({ model: 'far', input: 'sky', dimensions: 8 });
    });

    test('moves to the next backend if one fails, and has one usage row with its cost', async () => {
      first.behave('dies-at-once');
      const before = first.requests.length;
      let response = new Response();
      // The text decides which backend is tried first.
      for (let at = 0; first.requests.length === before && at < 50; at++) {
        const json = { model: 'far', input: [`red ${at}`, 'sky'] };
        response = await server.fetch('/v1/embeddings', { json });
        assert.equal(response.status, 200);
        assert.equal(response.headers.get('x-served-by'), 'b');
      }
      first.behave('answers');
      assert.ok(first.requests.length > before);
      const id = response.headers.get('x-request-id');
      const row = await until('the row is written', async () => {
        const listed = await (await owner('/dashboard/api/usage/requests?limit=50')).json();
        const { data } = listed as { data: Record<string, unknown>[] };
        return data.find((one) => one.id === id && one.status === 'done');
      });
      const { operation, prompt_tokens, completion_tokens, cost, backend } = row;
      assert.deepEqual(
        { operation, prompt_tokens, completion_tokens, cost, backend },
        {
          operation: 'embeddings',
          prompt_tokens: 3,
          completion_tokens: 0,
          cost: 0.003,
          backend: 'b',
        },
      );
    });

    test('of two thousand texts is answered whole', async () => {
      const many = Array.from({ length: 2048 }, (_, at) => `text ${at}`);
      const { data, usage } = await client().embeddings.create({ model: 'far', input: many });
      assert.equal(data.length, 2048);
      assert.equal(usage.prompt_tokens, 4096);
      assert.deepEqual(
        data.map(({ index }) => index),
        many.map((_, at) => at),
      );
    });
  });

  interface RankBody {
    results: { index: number; relevance_score: number; document?: { text: string } }[];
    usage: { prompt_tokens: number; total_tokens: number };
  }

  describe('reranking', () => {
    const documents = ['green sky', { text: 'the red apple' }, 'red river'];

    for (const path of ['/v1/rerank', '/rerank'])
      test(`at ${path} sorts by relevance`, async () => {
        const body = { model: 'far-rank', query: 'red apple', documents };
        const { results, usage } = await post<RankBody>(path, body);
        assert.deepEqual(results, [
          { index: 1, relevance_score: 1 },
          { index: 2, relevance_score: 0.5 },
          { index: 0, relevance_score: 0 },
        ]);
        assert.equal(usage.prompt_tokens, 13);
        const shown = { ...body, top_n: 1, return_documents: true };
        assert.deepEqual((await post<RankBody>(path, shown)).results, [
          { index: 1, relevance_score: 1, document: { text: 'the red apple' } },
        ]);
      });

    test('by a model on this machine scores from 0 to 1', async () => {
      const body = { model: 'near-rank', query: 'red', documents };
      const { results, usage } = await post<RankBody>('/v1/rerank', body);
      assert.deepEqual(results.map(({ index }) => index).toSorted(), [0, 1, 2]);
      const scores = results.map(({ relevance_score }) => relevance_score);
      assert.ok(scores.every((score) => score > 0 && score < 1));
      assert.deepEqual(
        scores,
        scores.toSorted((a, b) => b - a),
      );
      assert.equal(usage.prompt_tokens, 6 + 7 + 6);
    });

    test('refuses empty documents by their index, long queries, and what is no rerank model', async () => {
      const empty = await refusal('/v1/rerank', {
        model: 'far-rank',
        query: 'a',
        documents: ['a', ''],
      });
      assert.equal(empty.param, 'documents[1]');
      const query = 'q'.repeat(65_537);
      const long = await refusal('/v1/rerank', { model: 'far-rank', query, documents: ['a'] });
      assert.equal(long.param, 'query');
      for (const model of ['near', 'far-small', 'far-ollama', 'hermes3-8b']) {
        const error = await refusal('/v1/rerank', { model, query: 'a', documents: ['a'] });
        assert.equal(error.code, 'model_not_supported', model);
      }
    });
  });

  describe('a model of another kind', () => {
    test('is refused with the endpoint that takes it', async () => {
      const messages = [{ role: 'user', content: 'Hello' }];
      for (const [model, endpoint] of [
        ['near', '/v1/embeddings'],
        ['far-small', '/v1/embeddings'],
        ['near-rank', '/v1/rerank'],
        ['far-rank', '/v1/rerank'],
      ] as const) {
        const error = await refusal('/v1/chat/completions', { model, messages });
        assert.equal(error.code, 'model_not_supported');
        assert.ok(error.message.includes(endpoint), error.message);
      }
      const chat = await refusal('/v1/embeddings', { model: 'hermes3-8b', input: 'Hello' });
      assert.match(chat.message, /generates text: send its requests to \/v1\/chat\/completions/);
    });
  });

  describe('tokens', () => {
    test('of a text and a conversation come from the model that serves them', async () => {
      for (const prefix of ['', '/v1']) {
        const model = 'hermes3-8b';
        const prompt = 'Once upon a time';
        const body = { model, prompt, add_special_tokens: false, return_token_strs: true };
        type Tokenized = {
          count: number;
          tokens: number[];
          token_strs: string[];
          max_model_len: number;
        };
        const { count, tokens, token_strs, max_model_len } = await post<Tokenized>(
          `${prefix}/tokenize`,
          body,
        );
        assert.equal(count, tokens.length);
        assert.equal(token_strs.join(''), prompt);
        assert.equal(max_model_len, 131_072);
        assert.deepEqual(await post(`${prefix}/detokenize`, { model, tokens }), { prompt });
        const messages = [{ role: 'user', content: prompt }];
        const chat = await post<Tokenized>(`${prefix}/tokenize`, { model, messages });
        const spoken = await client().chat.completions.create({
          model,
          messages: [{ role: 'user', content: prompt }],
          max_tokens: 1,
        });
        assert.equal(chat.count, spoken.usage?.prompt_tokens);
      }
    });

    test('are refused without a text, and by backends without a tokenizer', async () => {
      assert.equal((await refusal('/tokenize', { model: 'far' })).param, 'prompt');
      const both = { model: 'far', prompt: 'a', messages: [{ role: 'user', content: 'a' }] };
      assert.equal((await refusal('/tokenize', both)).param, 'messages');
      const none = await refusal('/tokenize', { model: 'far-ollama', prompt: 'a' });
      assert.equal(
        none.message,
        'No backend of far-ollama can tokenize texts. Name a model that can.',
      );
      const unknown = await refusal('/detokenize', { model: 'hermes3-8b', tokens: [4_000_000] });
      assert.equal(unknown.param, 'tokens');
    });
  });

  test('no endpoint answers without a key', async () => {
    for (const path of ['/v1/embeddings', '/v1/rerank', '/rerank', '/tokenize', '/detokenize']) {
      const response = await fetch(`${server.url}${path}`, { method: 'POST', body: '{}' });
      assert.equal(response.status, 401, path);
      const { error } = (await response.json()) as ErrorBody;
      assert.equal(error.type, 'invalid_request_error');
    }
  });
});
