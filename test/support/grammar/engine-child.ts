// Runs in a child process, because llama.cpp needs a thread pool of one (UV_THREADPOOL_SIZE is read once
// per process): generates under each grammar it is sent and tells what came out.

import { fileURLToPath } from 'node:url';
import { getLlama, LlamaGrammarEvaluationState, LlamaLogLevel, type Token } from 'node-llama-cpp';

export interface EngineTask {
  readonly grammar: string;
  readonly prompt: string;
  readonly temperature: number;
  readonly maxTokens: number;
  /** To be told whether they belong to the grammar. */
  readonly texts: readonly string[];
}

export interface EngineOutcome {
  readonly text: string;
  /** The end of the grammar was reached and the model ended there. */
  readonly completed: boolean;
  readonly belongs: readonly boolean[];
}

const modelPath = fileURLToPath(
  new URL('../../../model/millrace-builtin-23m-q8_0.gguf', import.meta.url),
);
const llama = await getLlama({
  build: 'never',
  skipDownload: true,
  gpu: false,
  maxThreads: 1,
  logLevel: LlamaLogLevel.error,
});
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ sequences: 1, contextSize: 1024, threads: 1 });
const sequence = context.getSequence();

async function run(task: EngineTask): Promise<EngineOutcome> {
  const { prompt, temperature, maxTokens } = task;
  const grammar = await llama.createGrammar({ grammar: task.grammar });
  const reader = grammar as unknown as { _testText(text: string): boolean };
  const belongs = task.texts.map((text) => reader._testText(text));
  const grammarEvaluationState = new LlamaGrammarEvaluationState({ model, grammar });
  const chat = `<|im_start|>user\n${prompt}<|im_end|>\n<|im_start|>assistant\n`;
  const sampling = { temperature, topK: 0, topP: 1, seed: 11 };
  const written: Token[] = [];
  let completed = false;
  await sequence.clearHistory();
  for await (const token of sequence.evaluate(model.tokenize(chat, true), {
    ...sampling,
    yieldEogToken: true,
    grammarEvaluationState,
  })) {
    completed = model.isEogToken(token);
    if (completed || written.push(token) === maxTokens) break;
  }
  return { text: model.detokenize(written), completed, belongs };
}

process.on('message', async (tasks: EngineTask[]) => {
  const outcomes: EngineOutcome[] = [];
  for (const task of tasks) outcomes.push(await run(task));
  process.send!(outcomes, () => process.exit(0));
});
process.send!('ready');
