// Runs in a child process, because samples would overtake their batch in a pool of more than one thread (UV_THREADPOOL_SIZE is
// read once per process): generates under each grammar it is sent and reports the output.

import { fileURLToPath } from 'node:url';
import { openModel } from '#inference/engines/local/child/open-model.ts';

export interface EngineTask {
  readonly grammar: string;
  readonly prompt: string;
  readonly temperature: number;
  readonly maxTokens: number;
  /** Texts to check against the grammar. */
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
const { model, context, batchSize, ...binding } = await openModel({
  ...{ modelPath, gpu: false, kernels: null, device: null, threads: 1 },
  ...{ sequences: 1, contextSize: 1024, maxMemoryBytes: null },
});

async function run(task: EngineTask): Promise<EngineOutcome> {
  const { prompt, temperature, maxTokens } = task;
  const grammar = binding.parseGrammar(task.grammar);
  const reader = grammar as unknown as { isTextCompatible(text: string): boolean };
  const belongs = task.texts.map((text) => reader.isTextCompatible(text));
  const grammarEvaluationState = binding.createGrammarState(grammar);
  const chat = `<|im_start|>user\n${prompt}<|im_end|>\n<|im_start|>assistant\n`;
  const sampler = binding.takeSampler({
    ...{ temperature, topK: 0, topP: 1, seed: 11 },
    grammarEvaluationState,
  });
  context.disposeSequence(0);
  const written: number[] = [];
  let next = model.tokenize(chat, true);
  let position = 0;
  let completed = false;
  while (written.length < maxTokens) {
    const token = await context.sampleToken(await read(next, position), sampler);
    position += next.length;
    completed = model.isEogToken(token);
    if (completed) break;
    written.push(token);
    next = Uint32Array.of(token);
  }
  binding.returnSampler(sampler);
  const { detokenize } = model as unknown as { detokenize(tokens: Uint32Array): string };
  return { text: detokenize.call(model, Uint32Array.from(written)), completed, belongs };
}

/** Returns where the logits of the last token are. */
async function read(tokens: Uint32Array, position: number): Promise<number> {
  let index = 0;
  for (let at = 0; at < tokens.length; at += batchSize) {
    const piece = tokens.subarray(at, at + batchSize);
    context.initBatch(piece.length);
    const flagged = Uint32Array.of(piece.length - 1);
    index = context.addToBatch(0, position + at, piece, flagged)[0] as number;
    await context.decodeBatch();
  }
  return index;
}

process.on('message', async (tasks: EngineTask[]) => {
  const outcomes: EngineOutcome[] = [];
  for (const task of tasks) outcomes.push(await run(task));
  process.send!(outcomes, () => process.exit(0));
});
process.send!('ready');
