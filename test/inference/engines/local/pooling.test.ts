// Embedding and rerank models on this machine, at the boundary of the local engine, with tiny models of random weights.

import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import type { Engine, EngineError } from '#inference/engine.ts';
import { createLocalEngine } from '#inference/engines/local/parent/local.ts';
import { call, chat, completion, createBuiltin } from '#test/support/builtin.ts';
import { writePoolingModel } from '#test/support/pooling-model.ts';

type PoolingEngine = Engine &
  Required<Pick<Engine, 'embed' | 'rerank' | 'tokenize' | 'detokenize'>>;

const grammars = { compile: () => Promise.reject(new Error('No grammar is needed here.')) };
const { signal } = new AbortController();
let folder = '';
let embedder: PoolingEngine;
let ranker: PoolingEngine;

describe('local models that compute', () => {
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-pooling-'));
    await writePoolingModel(join(folder, 'embed.gguf'));
    await writePoolingModel(join(folder, 'rank.gguf'), { ranks: true });
    const open = (name: string) =>
      createLocalEngine({
        name,
        modelPath: join(folder, `${name}.gguf`),
        grammars,
      }) as PoolingEngine;
    embedder = open('embed');
    ranker = open('rank');
  });

  after(async () => {
    await Promise.all([embedder.close(), ranker.close()]);
    await rm(folder, { recursive: true });
  });

  const rejected = (code: string, words: RegExp) => (error: EngineError) => {
    assert.equal(error.failure, 'rejected');
    assert.equal(error.code, code);
    assert.match(error.message, words);
    return true;
  };

  describe('an embedding model', () => {
    test('returns a vector of length one for each text, in order, with exact counts', async () => {
      const inputs = ['the red apple', 'green sky', 'the red apple', 'xyz'];
      const { vectors, promptTokens } = await embedder.embed({ kind: 'embed', inputs }, call());
      assert.equal(vectors.length, inputs.length);
      for (const vector of vectors) {
        assert.equal(vector.length, 32);
        assert.ok(Math.abs(Math.hypot(...vector) - 1) < 1e-5);
      }
      assert.deepEqual(vectors[0], vectors[2]);
      assert.notDeepEqual(vectors[0], vectors[1]);
      let counted = 0;
      for (const prompt of inputs) {
        const task = { source: { prompt }, addsSpecial: true, withTexts: false };
        counted += (await embedder.tokenize(task, signal)).tokens.length;
      }
      assert.equal(promptTokens, counted);
    });

    test('embeds token ids like the text they stand for', async () => {
      const task = { source: { prompt: 'the red apple' }, addsSpecial: true, withTexts: true };
      const { tokens, texts } = await embedder.tokenize(task, signal);
      assert.deepEqual(texts, ['[CLS]', ' the', ' red', ' apple', '[SEP]']);
      const inputs = [tokens, 'the red apple'];
      const { vectors } = await embedder.embed({ kind: 'embed', inputs }, call());
      assert.deepEqual(vectors[0], vectors[1]);
    });

    test('refuses a text that is too long by its index, and ids that it does not have', async () => {
      const long = { kind: 'embed', inputs: ['short', 'sky '.repeat(100)] } as const;
      const words = /^input\[1\] has 102 tokens; this model reads at most 64\./;
      await assert.rejects(
        embedder.embed(long, call()),
        rejected('context_length_exceeded', words),
      );
      const unknown = { kind: 'embed', inputs: [[1, 4_000_000]] } as const;
      await assert.rejects(embedder.embed(unknown, call()), rejected('invalid_value', /4000000/));
    });

    test('neither generates nor ranks', async () => {
      const words = /embeds texts: send its requests to \/v1\/embeddings/;
      await assert.rejects(
        embedder.respond(chat('Hello'), call()),
        rejected('model_not_supported', words),
      );
      await assert.rejects(
        embedder.respond(completion({ prompt: 'Once' }), call()),
        rejected('model_not_supported', words),
      );
      const task = { kind: 'rerank', query: 'red', documents: ['apple'] } as const;
      await assert.rejects(embedder.rerank(task, call()), rejected('model_not_supported', words));
    });

    test('stops when the client leaves, and serves the next request', async () => {
      const leaving = new AbortController();
      const inputs = Array.from({ length: 2000 }, () => 'the red apple of the green river');
      let seen = 0;
      const embedding = embedder.embed(
        { kind: 'embed', inputs },
        call({
          signal: leaving.signal,
          onUsage({ prompt_tokens }) {
            seen = prompt_tokens;
            leaving.abort(new Error('left'));
          },
        }),
      );
      await assert.rejects(embedding, /left/);
      assert.ok(seen > 0);
      const next = await embedder.embed({ kind: 'embed', inputs: ['sky'] }, call());
      assert.equal(next.vectors.length, 1);
    });

    test('lets callers take turns', async () => {
      const done: string[] = [];
      const embed = (caller: string, length: number) =>
        embedder
          .embed(
            { kind: 'embed', inputs: Array.from({ length }, () => 'the red apple') },
            call({ caller }),
          )
          .then(() => done.push(caller));
      await Promise.all([embed('bulk', 2000), embed('one', 1)]);
      assert.deepEqual(done, ['one', 'bulk']);
    });
  });

  describe('a rerank model', () => {
    test('scores each document from 0 to 1, in their order', async () => {
      const documents = ['the red apple', 'green sky', 'the red apple'];
      const task = { kind: 'rerank', query: 'apple', documents } as const;
      const { scores, promptTokens } = await ranker.rerank(task, call());
      assert.equal(scores.length, 3);
      for (const score of scores) assert.ok(score > 0 && score < 1);
      assert.equal(scores[0], scores[2]);
      assert.notEqual(scores[0], scores[1]);
      // [CLS] apple [SEP] the red apple [SEP], twice; [CLS] apple [SEP] green sky [SEP].
      assert.equal(promptTokens, 7 + 6 + 7);
    });

    test('does not embed', async () => {
      await assert.rejects(
        ranker.embed({ kind: 'embed', inputs: ['apple'] }, call()),
        rejected('model_not_supported', /ranks documents: send its requests to \/v1\/rerank/),
      );
    });
  });

  describe('a chat model', () => {
    const engine = createBuiltin() as PoolingEngine;
    after(() => engine.close());

    test('does not embed, because its vectors would mean nothing', async () => {
      await assert.rejects(
        engine.embed({ kind: 'embed', inputs: ['apple'] }, call()),
        rejected('model_not_supported', /generates text: .*or name a model that embeds texts/),
      );
    });

    test('turns texts and conversations into the tokens it counts, and tokens into text', async () => {
      const prompt = 'Once upon a time — naïve';
      const text = { source: { prompt }, addsSpecial: false, withTexts: false };
      const { tokens } = await engine.tokenize(text, signal);
      assert.equal(await engine.detokenize(tokens, signal), prompt);
      const task = chat('What is the capital of France?');
      assert.equal(task.kind, 'chat');
      const source = { chat: task.body as Extract<typeof task, { kind: 'chat' }>['body'] };
      const templated = await engine.tokenize({ ...text, source }, signal);
      assert.equal(templated.tokens.length, await engine.countPromptTokens(task, signal));
    });
  });
});
