// A request inside the local engine's child: what it does once, however many choices it has. The model is
// loaded in this process, so that the work can be counted.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { EngineError, Task, Usage } from '../../src/inference/engine.ts';
import { builtinModel } from '../../src/inference/engines/builtin.ts';
import { type LoadedModel, loadModel } from '../../src/inference/engines/local/load.ts';
import { chat, completion, toMessages, weatherTool } from './builtin.ts';

let model: LoadedModel;
before(async () => {
  model = await loadModel(
    {
      modelPath: builtinModel.modelPath,
      gpu: false,
      threads: 1,
      sequences: 4,
      contextSize: 512,
      memoryLimitBytes: null,
      standIn: false,
      startsText: false,
      temperature: 1,
      limits: { choices: 16, completionTokens: 10_000, waitingPromptTokens: 100 },
    },
    () => {},
  );
});
after(() => model.scheduler.stop());

function run(task: Task, grammars: { grammar?: string; lazyGrammar?: string } = {}) {
  const none = { grammar: null, lazyGrammar: null };
  const context = { caller: 'tester', contextWindow: 512, ...none, ...grammars };
  return new Promise<Usage>((resolve, reject) => {
    let usage: Usage;
    model.start(task, context, {
      started() {},
      chunk: (_, soFar) => {
        usage = soFar;
      },
      ended: () => resolve(usage),
      failed: reject,
    });
  });
}

test('a grammar is parsed once for all choices, also one that waits for a tool call', async (t) => {
  const parse = t.mock.method(model.binding, 'parseGrammar');
  const states = t.mock.method(model.binding, 'createGrammarState');
  const messages = toMessages('What is the weather in Paris?');
  await run(chat({ messages, n: 5 }), { grammar: 'root ::= "yes" | "no"' });
  assert.deepEqual([parse.mock.callCount(), states.mock.callCount()], [1, 5]);
  await run(chat({ messages, n: 3, tools: [weatherTool] }), {
    lazyGrammar: 'root ::= "<tool_call>" [^<]+ "</tool_call>"',
  });
  assert.deepEqual([parse.mock.callCount(), states.mock.callCount()], [2, 8]);
});

test('a prompt whose request is refused does not count as waiting', async () => {
  const prompt = 'river '.repeat(60);
  for (let round = 0; round < 2; round++)
    await assert.rejects(
      run(completion({ prompt, logit_bias: { 999999: 1 } })),
      (error: EngineError) => error.failure === 'rejected',
    );
  assert.equal((await run(completion({ prompt, max_tokens: 1 }))).completion_tokens, 1);
});
