// The process of the built-in engine: one model and the server in front of it. It has no database,
// no dashboard and no child process, so that its start takes little longer than to load the model.

import { once } from 'node:events';
import { totalmem } from 'node:os';
import { builtinModel } from '#inference/engines/local/builtin.ts';
import { createGrammarThread } from '#inference/engines/local/grammar-thread/grammar-thread.ts';
import { createInProcessEngine } from '#inference/engines/local/in-process.ts';
import { defaultLimits, defaultSequences } from '#inference/engines/local/protocol.ts';
import { systemClock } from '#lib/clock.ts';
import { shareCompileCache } from '#lib/computer/compile-cache.ts';
import { yieldMemory, yieldProcessor } from '#lib/computer/process-rank.ts';
import { StartError } from '#lib/start-error.ts';
import { createEngineServer } from './server.ts';

export interface EngineProcessOptions {
  /** The GGUF file; null for the repository's model, which stands in for the one that requests name. */
  readonly file: string | null;
  readonly port: number;
  readonly key: string;
  /** Null chooses by the computer's cores. */
  readonly threads: number | null;
  /** Tokens of each request; null for the model's own window, within a default. */
  readonly contextSize: number | null;
}

/** Those that run, and as many as the queue of a server's own models holds. */
const maxRequests = defaultSequences + 256;

/** Without kernels, the only GPU that is tried is Metal. */
const ownFile = {
  name: 'model',
  standIn: false,
  startsText: false,
  temperature: 1,
  gpu: 'auto',
} as const;

/** As the log says it. Recipes read it. */
const states = {
  loading: 'loading the model',
  loaded: 'the model is loaded',
  unloaded: 'the model was unloaded',
};

/** Resolves when the engine listens and its model is loaded. Rejects with StartError. */
export async function startBuiltinEngine(options: EngineProcessOptions): Promise<void> {
  yieldMemory();
  const { file, port, key, threads, contextSize } = options;
  const engine = createInProcessEngine({
    ...(file === null ? { ...builtinModel, gpu: false } : { ...ownFile, modelPath: file }),
    ...{ kernels: null, device: null, threads, contextSize, sequences: defaultSequences },
    // As much as a server's own models may use.
    maxMemoryBytes: totalmem() * 0.75,
    limits: defaultLimits,
    grammars: createGrammarThread(systemClock),
    maxRequests,
    onState: (state) => console.log(states[state]),
  });
  const server = createEngineServer({ key, engine, standIn: file === null });
  // It listens at once: requests that come meanwhile wait for the model, and need not try the port again.
  const [{ modelKind, window, threads: used, memoryBytes }] = await Promise.all([
    engine.describe().catch(failToStart('The model could not be loaded')),
    once(server.listen(port, '127.0.0.1'), 'listening').catch(
      failToStart("The engine can't listen"),
    ),
  ]);
  console.log(
    `${modelKind} model with ${window} tokens, ${used} threads, ${Math.ceil(memoryBytes / 2 ** 20)} MiB`,
  );
  if (modelKind !== 'chat') yieldProcessor();
  // Machines that read the same sources compile nothing again.
  shareCompileCache();
}

const failToStart =
  (what: string) =>
  (error: Error): never => {
    throw new StartError(`${what}: ${error.message}`, error);
  };
