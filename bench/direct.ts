// The engine's own batching loop without its child process: what the engine and the API are measured
// against. The process must have been started with UV_THREADPOOL_SIZE=1, as the child of a model without a GPU is.

import type { Task } from '../src/inference/engine.ts';
import { loadModel } from '../src/inference/engines/local/child/load.ts';
import type { RequestOutput } from '../src/inference/engines/local/child/runtime.ts';
import type { ChildOptions } from '../src/inference/engines/local/protocol.ts';
import type { EngineChunk, Usage } from '../src/inference/wire/response.ts';

export interface Direct {
  /** Resolves at the end, with the totals. */
  run(task: Task, onChunk: (chunk: EngineChunk) => void): Promise<Usage>;
}

export async function openDirect(
  options: Pick<ChildOptions, 'modelPath' | 'threads'>,
): Promise<Direct> {
  const model = await loadModel(
    {
      gpu: false,
      device: null,
      kernels: null,
      sequences: 8,
      contextSize: 2048,
      maxMemoryBytes: null,
      standIn: false,
      startsText: false,
      temperature: 1,
      limits: { maxChoices: 1024, maxCompletionTokens: 1e6, maxWaitingPromptTokens: 1e6 },
      ...options,
    },
    () => {},
    1,
  );
  const context = {
    caller: 'bench',
    priority: 0,
    contextWindow: 2048,
    grammar: null,
    lazyGrammar: null,
  };
  return {
    run: (task, onChunk) =>
      new Promise((resolve, reject) => {
        let usage: Usage | null = null;
        const output: RequestOutput = {
          started() {},
          chunk(chunk) {
            usage = chunk.usage ?? usage;
            onChunk(chunk);
          },
          ended: () => (usage === null ? reject(new Error('No usage came')) : resolve(usage)),
          failed: reject,
        };
        model.start({ task, context, output });
      }),
  };
}
