// How each kind of engine is started: its command line, its environment, and the log lines that say how far it is or why
// it failed. Data and pure functions.

import { dirname, isAbsolute } from 'node:path';
import { fileURLToPath } from 'node:url';
import { toSleepArguments, toSleepEnvironment } from '#deployments/ground/sleep.ts';
import type { DeploymentSpec } from '#deployments/ground/spec.ts';
import type { UpstreamServer } from '#inference/engines/upstream/servers.ts';
import { sharedNodeOptions } from '#lib/computer/compile-cache.ts';

export interface EnginePlace {
  readonly port: number;
  /** The key that the engine asks for. Only this server has it. */
  readonly key: string;
  /** The command that runs Millrace itself. */
  readonly millrace: readonly string[];
}

export interface Recipe {
  /** The dialect that the engine speaks. */
  readonly server: UpstreamServer;
  /** The program and its arguments. */
  toCommand(spec: DeploymentSpec, place: EnginePlace): readonly string[];
  toEnvironment(spec: DeploymentSpec, place: EnginePlace): Record<string, string>;
  /** Path of a cheap GET request that a working engine answers without a failure. */
  readonly health: string;
  /** How long a start usually takes, before one was measured. */
  readonly loadMs: number;
  /** Lines of the log that mean progress, with what to call it. */
  readonly progress: readonly (readonly [pattern: RegExp, name: string])[];
  /** Lines of the log that say why a start failed, the most specific first. */
  readonly failures: readonly (readonly [pattern: RegExp, reason: string])[];
}

const outOfMemory = 'There is too little memory for this model and its context.';
const badArgument = 'The engine does not take one of its arguments. Its log says which.';

/** It listens at another port than it was told, or another process was faster. */
const portInUse = [
  /EADDRINUSE|address already in use/i,
  "The engine can't listen: the port is in use. A program must listen at the port in PORT.",
] as const;

const address = '127.0.0.1';

export const recipes: Readonly<Record<DeploymentSpec['engine'], Recipe>> = {
  vllm: {
    server: 'vllm',
    toCommand: ({ program, model, source, args, ...spec }, { port }) => [
      program ?? 'vllm',
      'serve',
      source ?? model,
      ...['--host', address, '--port', `${port}`, '--served-model-name', model],
      ...toSleepArguments(spec),
      ...args,
    ],
    toEnvironment: (spec, { key }) => ({ VLLM_API_KEY: key, ...toSleepEnvironment(spec) }),
    health: '/health',
    loadMs: 90_000,
    progress: [
      [/Starting to load model|Loading (safetensors|pt) checkpoint shards/, 'loading weights'],
      [/Capturing CUDA graph/i, 'capturing graphs'],
      [/Starting vLLM (API )?server|Application startup complete/, 'starting to listen'],
    ],
    failures: [
      [/CUDA out of memory|OutOfMemoryError|No available memory for the cache blocks/, outOfMemory],
      [
        /max seq len .* is larger than the (maximum number of tokens|available KV cache)/,
        outOfMemory,
      ],
      [
        /is less than desired (CPU|GPU) memory utilization/,
        'Other programs use too much of the memory, or --gpu-memory-utilization is too high.',
      ],
      [
        /Repository Not Found|is not a valid model identifier/,
        'There is no such model on the hub.',
      ],
      [/Invalid repository ID or local directory/, 'There are no such weights.'],
      [
        /GatedRepoError|Access to model .* is restricted/,
        'The hub asks for a token for this model.',
      ],
    ],
  },
  sglang: {
    server: 'sglang',
    toCommand: ({ program, model, source, args, ...spec }, { port, key }) => [
      program ?? 'python3',
      ...['-m', 'sglang.launch_server', '--model-path', source ?? model],
      ...['--host', address, '--port', `${port}`, '--served-model-name', model, '--api-key', key],
      ...toSleepArguments(spec),
      ...args,
    ],
    toEnvironment: () => ({}),
    health: '/health',
    loadMs: 90_000,
    progress: [
      [/Load weight begin/, 'loading weights'],
      [/Capture cuda graph begin/i, 'capturing graphs'],
      [/The server is fired up/, 'starting to listen'],
    ],
    failures: [
      [/CUDA out of memory|OutOfMemoryError|Not enough memory/, outOfMemory],
      [/Repository Not Found/, 'There is no such model on the hub.'],
      // It then kills itself, so that its end says nothing.
      [/SIGQUIT received/, 'A process of SGLang failed. Its log says why.'],
    ],
  },
  'llama-server': {
    server: 'llama-server',
    toCommand: ({ program, model, source, args, ...spec }, { port }) => [
      program ?? 'llama-server',
      ...['--model', source ?? '', '--alias', model, '--host', address, '--port', `${port}`],
      ...toSleepArguments(spec),
      ...args,
    ],
    toEnvironment: (_spec, { key }) => ({ LLAMA_API_KEY: key }),
    health: '/health',
    loadMs: 15_000,
    progress: [
      // Versions differ.
      [/load_model: loading model|load_tensors|llama_model_load/, 'loading weights'],
      [/model loaded|listening on/, 'starting to listen'],
    ],
    failures: [
      [/error: invalid argument|error while handling argument/, badArgument],
      [/out of memory|(failed|unable) to allocate/i, outOfMemory],
      [/failed to open GGUF file/, 'There are no such weights.'],
      [/failed to read magic|invalid magic/, 'The weights are not a GGUF file.'],
      [/failed to load model|unable to load model/i, 'The weights could not be loaded.'],
    ],
  },
  builtin: {
    // It speaks as vLLM does.
    server: 'vllm',
    toCommand: ({ program, source, args }, { port, millrace }) => [
      ...(program === null ? millrace : [program]),
      ...['engine', ...(source === null ? [] : [source]), '--port', `${port}`, ...args],
    ],
    toEnvironment: (_spec, { key }) => ({
      MILLRACE_API_KEY: key,
      // A sample must not overtake its batch. Node reads this before any of our code runs.
      UV_THREADPOOL_SIZE: '1',
    }),
    health: '/health',
    loadMs: 1_000,
    progress: [[/^loading the model/, 'loading weights']],
    failures: [
      [/^error: (unknown option|option )/, badArgument],
      [/EADDRINUSE/, "The engine can't listen: the port is in use."],
      [/MiB are allowed|out of memory|failed to allocate/i, outOfMemory],
      [/could not be loaded: ENOENT/, 'There are no such weights.'],
      [/could not be loaded: The file of the model/, 'The weights are not a sound GGUF file.'],
      [/could not be loaded/, 'The weights could not be loaded.'],
    ],
  },
  command: {
    server: 'openai',
    toCommand: ({ program, args }) => [program ?? '', ...args],
    toEnvironment: ({ source }, { port, key }) => ({
      ...{ PORT: `${port}`, HOST: address, API_KEY: key },
      ...(source !== null && { WEIGHTS: source }),
    }),
    health: '/v1/models',
    loadMs: 30_000,
    progress: [],
    failures: [portInUse, [/out of memory/i, outOfMemory]],
  },
};

/** Why a start failed, by the first of the recipe's patterns that matches a line of the log. */
export const findFailure = (lines: readonly string[], { failures }: Recipe): string | undefined =>
  failures.find(([pattern]) => lines.some((line) => pattern.test(line)))?.[1];

/**
 * The folder of a program that is named by its path. It is searched first, as in an activated virtual environment: vLLM and
 * SGLang compile kernels with the `ninja` that is beside them.
 */
export const findProgramFolder = ([program = '']: readonly string[]): string | null =>
  isAbsolute(program) ? dirname(program) : null;

/** The command that runs Millrace on this computer. */
export const ownProgram = [
  process.execPath,
  ...sharedNodeOptions(),
  fileURLToPath(new URL('../../main.js', import.meta.url)),
];
