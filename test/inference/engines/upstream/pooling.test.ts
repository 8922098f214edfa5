// Embeddings, reranking and tokens through the upstream engine: what servers send in their dialects, and what they get
// wrong.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import type { Engine, EngineError } from '#inference/engine.ts';
import type { UpstreamServer } from '#inference/engines/upstream/servers.ts';
import {
  createUpstreamEngine,
  type UpstreamOptions,
} from '#inference/engines/upstream/upstream.ts';
import type { ImplausibleCounts } from '#inference/engines/upstream/usage.ts';
import { newCall } from '#test/support/engine-call.ts';
import { listen } from '#test/support/listen.ts';
import { createPair, upstreamOptions } from '#test/support/upstream.ts';

type Responder = (
  body: Record<string, unknown>,
  path: string,
) => { status?: number; body: unknown };

/** An engine in front of a server that responds as the test says. */
async function before(
  t: TestContext,
  respond: Responder,
  overrides: Partial<UpstreamOptions> = {},
): Promise<Required<Engine>> {
  const server = createServer(async (request, response) => {
    const text = (await request.toArray()).join('');
    const { status = 200, body } = respond(JSON.parse(text), request.url ?? '');
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  });
  const port = await listen(t, server);
  const url = `http://127.0.0.1:${port}/v1`;
  const engine = createUpstreamEngine(upstreamOptions(url, overrides));
  t.after(() => engine.close());
  return engine as Required<Engine>;
}

const embedding = (index: number, embedding: unknown) => ({
  object: 'embedding',
  index,
  embedding,
});
const usage = { prompt_tokens: 4, total_tokens: 4 };
const two = { kind: 'embed', inputs: ['red apple', 'green sky'] } as const;
const ranked = { kind: 'rerank', query: 'red', documents: ['red apple', 'sky'] } as const;

describe('embeddings', () => {
  test('come back in the order of their texts, whatever order and form they are sent in', async (t) => {
    const floats = Buffer.from(Float32Array.of(1, 0).buffer).toString('base64');
    let sent: unknown = null;
    const engine = await before(t, (body) => {
      sent = body;
      return { body: { data: [embedding(1, [0, 1]), embedding(0, floats)], usage } };
    });
    const { vectors, promptTokens } = await engine.embed(two, newCall());
    assert.deepEqual(vectors, [Float32Array.of(1, 0), Float32Array.of(0, 1)]);
    assert.equal(promptTokens, 4);
    assert.deepEqual(sent, { model: 'scripted', input: two.inputs, encoding_format: 'base64' });
  });

  test('of many texts are requested in parts, and one list of ids as a list', async (t) => {
    const { upstream, engine } = await createPair(t);
    const inputs = Array.from({ length: 300 }, (_, at) => `text ${at}`);
    const given = await engine.embed?.({ kind: 'embed', inputs }, newCall());
    assert.equal(given?.vectors.length, 300);
    assert.equal(given?.promptTokens, 600);
    assert.deepEqual(
      upstream.requests.map(({ body }) => (body.input as unknown[]).length),
      [128, 128, 44],
    );
    await engine.embed?.({ kind: 'embed', inputs: [[1, 2, 3]] }, newCall());
    assert.deepEqual(upstream.requests.at(-1)?.body.input, [[1, 2, 3]]);
  });

  const unreadable: Record<string, unknown> = {
    'a missing text': { data: [embedding(0, [1])], usage },
    'an index twice': { data: [embedding(0, [1]), embedding(0, [1])], usage },
    'an index beyond all': { data: [embedding(0, [1]), embedding(1e9, [1])], usage },
    'no numbers': { data: [embedding(0, ['x']), embedding(1, [1])], usage },
    'an empty vector': { data: [embedding(0, []), embedding(1, [1])], usage },
    'half a float': { data: [embedding(0, 'AAAA'), embedding(1, [1])], usage },
    'other lengths': { data: [embedding(0, [1, 2]), embedding(1, [1])], usage },
    'something else': 'sorry',
    nothing: null,
  };
  for (const [what, body] of Object.entries(unreadable))
    test(`with ${what} are the backend’s failure`, async (t) => {
      const engine = await before(t, () => ({ body }));
      await assert.rejects(engine.embed(two, newCall()), { failure: 'unavailable' });
    });

  test('are not billed by counts that can’t be true', async (t) => {
    for (const counts of [{ prompt_tokens: 1e9 }, { prompt_tokens: -1 }, { prompt_tokens: 1.5 }]) {
      const reports: ImplausibleCounts[] = [];
      const data = [embedding(0, [1]), embedding(1, [1])];
      const engine = await before(t, () => ({ body: { data, usage: counts } }), {
        onImplausible: (report) => reports.push(report),
      });
      const { promptTokens } = await engine.embed(two, newCall());
      assert.equal(promptTokens, null);
      assert.equal(reports.length, 1);
    }
  });

  test('of a model that can’t embed are refused, without blaming the backend', async (t) => {
    for (const status of [404, 405, 501]) {
      const engine = await before(t, () => ({ status, body: { detail: 'Not Found' } }));
      const refusal = { failure: 'rejected', code: 'model_not_supported', param: 'model' };
      await assert.rejects(engine.embed(two, newCall()), refusal);
      await assert.rejects(engine.rerank(ranked, newCall()), refusal);
    }
  });

  test('of a text that is too long are refused with the length that fits', async (t) => {
    const message =
      "This model's maximum context length is 512 tokens. However, you requested 900 tokens in the input for embedding generation. Please reduce the length of the input.";
    const body = { error: { message, type: 'BadRequestError', code: 400 } };
    const engine = await before(t, () => ({ status: 400, body }));
    await assert.rejects(engine.embed(two, newCall()), (error: EngineError) => {
      assert.equal(error.code, 'context_length_exceeded');
      assert.equal(error.param, 'input');
      assert.match(error.message, /^A text is longer than the 512 tokens this model reads\./);
      return true;
    });
  });

  test('stop when the client leaves', async (t) => {
    const leaving = new AbortController();
    const { upstream, engine } = await createPair(t, { behaviour: 'slow-headers' });
    const call = newCall({
      signal: leaving.signal,
      onWork: () => leaving.abort(new Error('left')),
    });
    await assert.rejects(engine.embed?.(two, call) ?? Promise.resolve(), /left/);
    assert.ok(upstream.requests.length <= 1);
  });
});

describe('reranking', () => {
  test('passes probabilities on, and turns logits into them', async (t) => {
    const results = [
      { index: 1, relevance_score: 0.25 },
      { index: 0, relevance_score: 0.75 },
    ];
    let given: unknown = { results, usage };
    const engine = await before(t, () => ({ body: given }), { server: 'llama-server' });
    assert.deepEqual(await engine.rerank(ranked, newCall()), {
      scores: [0.75, 0.25],
      promptTokens: 4,
    });
    given = { results: [results[0], { index: 0, relevance_score: -2 }], usage };
    const { scores } = await engine.rerank(ranked, newCall());
    assert.ok(Math.abs((scores[0] ?? 0) - 0.1192) < 1e-4);
    assert.ok(Math.abs((scores[1] ?? 0) - 0.5622) < 1e-4);
  });

  test('reads SGLang’s list', async (t) => {
    const body = [
      { score: 0.9, document: 'red apple', index: 0, meta_info: {} },
      { score: 0.1, document: 'sky', index: 1, meta_info: {} },
    ];
    const engine = await before(t, () => ({ body }), { server: 'sglang' });
    assert.deepEqual(await engine.rerank(ranked, newCall()), {
      scores: [0.9, 0.1],
      promptTokens: null,
    });
  });

  test('is not offered by Ollama', async (t) => {
    const { engine } = await createPair(t, {}, { server: 'ollama' });
    assert.equal(engine.rerank, undefined);
    assert.equal(engine.tokenize, undefined);
  });
});

describe('tokens', () => {
  const { signal } = new AbortController();
  const source = { prompt: 'red apple' };
  const cases: [UpstreamServer, object, object][] = [
    [
      'vllm',
      { model: 'scripted', prompt: 'red apple', add_special_tokens: true, return_token_strs: true },
      { tokens: [5, 8], token_strs: ['red', ' apple'] },
    ],
    [
      'llama-server',
      { content: 'red apple', add_special: true, parse_special: true, with_pieces: true },
      {
        tokens: [
          { id: 5, piece: 'red' },
          { id: 8, piece: [32, 97, 112, 112, 108, 101] },
        ],
      },
    ],
  ];
  for (const [server, sent, body] of cases)
    test(`are asked for as ${server} has them`, async (t) => {
      const seen: unknown[] = [];
      const respond: Responder = (given, path) => {
        seen.push([path, given]);
        return { body: path === '/tokenize' ? body : { content: 'red apple' } };
      };
      const engine = await before(t, respond, { server });
      const task = { source, addsSpecial: true, withTexts: true };
      assert.deepEqual(await engine.tokenize(task, signal), {
        tokens: [5, 8],
        texts: ['red', ' apple'],
      });
      assert.equal(await engine.detokenize([5, 8], signal), 'red apple');
      assert.deepEqual(seen, [
        ['/tokenize', sent],
        ['/detokenize', { model: 'scripted', tokens: [5, 8] }],
      ]);
    });
});
