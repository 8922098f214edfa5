// Two models and memory for one: an idle model is unloaded to make room, a busy one is not.

import assert from 'node:assert';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { EngineError } from '#inference/engine.ts';
import { builtinModel } from '#inference/engines/local/builtin.ts';
import { createLocalEngine, type LocalEngine } from '#inference/engines/local/parent/local.ts';
import { createMemoryBudget } from '#inference/models/memory-budget.ts';
import { newCall } from '#test/support/engine-call.ts';
import { until } from '#test/support/until.ts';

/** No request here has a grammar. */
const noGrammars = { compile: () => assert.fail('a grammar was asked for') };

const folder = mkdtempSync(join(tmpdir(), 'millrace-memory-'));
const engines: LocalEngine[] = [];
describe('the memory of local models', () => {
  after(async () => {
    await Promise.all(engines.map((engine) => engine.close()));
    rmSync(folder, { recursive: true, force: true });
  });

  test('an idle model is unloaded to make room for another, a busy one is not', async () => {
    // The built-in model takes about 142 MB with its cache: one fits, two don't.
    const budget = createMemoryBudget(170_000_000);
    const open = (name: string) => {
      const modelPath = join(folder, `${name}.gguf`);
      copyFileSync(builtinModel.modelPath, modelPath);
      const share = budget.share(modelPath);
      const options = { name, modelPath, grammars: noGrammars, threads: 1, standIn: true };
      const engine = createLocalEngine({
        ...options,
        maxMemoryBytes: share.limit,
        onEvent: share.see,
      });
      share.own(engine);
      engines.push(engine);
      return engine;
    };
    const [one, two] = [open('one'), open('two')];
    const leaving = new AbortController();
    const call = newCall({ signal: leaving.signal, contextWindow: 4096 });
    const endless = { model: 'm', prompt: 'Once', ignore_eos: true, max_tokens: 1900 };
    const stream = await one.stream({ kind: 'completion', body: endless }, call);
    await assert.rejects(two.preload(), (error) => {
      assert(error instanceof EngineError);
      assert.equal(error.failure, 'overloaded');
      assert.match(error.message, /MiB are allowed/);
      return true;
    });
    assert(one.status().loaded);
    leaving.abort(new Error('enough'));
    await assert.rejects(async () => {
      for await (const _ of stream);
    }, /enough/);
    await until('the second model is loaded', async () => {
      await two.preload().catch(() => {});
      return two.status().loaded;
    });
    assert.equal(one.status().loaded, false);
  });
});
