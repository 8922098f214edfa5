// The built-in model as an engine for tests, with handwritten grammars and short forms of requests.

import type { TestContext } from 'node:test';
import { pino } from 'pino';
import type { Engine, Task } from '#inference/engine.ts';
import { builtinModel } from '#inference/engines/local/builtin.ts';
import type { GrammarRequest } from '#inference/engines/local/grammar-thread/grammar-compiler.ts';
import { createGpuLeases } from '#inference/engines/local/parent/gpu-lease.ts';
import {
  createLocalEngine,
  type LocalEngineOptions,
} from '#inference/engines/local/parent/local.ts';
import type { ChatRequest, CompletionRequest } from '#inference/schema.ts';
import { newCall, readStream } from './engine-call.ts';

export const weatherTool = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: 'The weather in a city',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};

const truth = String.raw`root ::= "{\"answer\": " ("true" | "false") "}"`;
const object = String.raw`root ::= "{\"" [a-z]+ "\": \"" [a-z]+ "\"}"`;

function weatherCalls(names: readonly string[], parallel: boolean): string {
  const name = names.map((text) => `"\\"${text}\\""`).join(' | ');
  return String.raw`root ::= call${parallel ? String.raw` ("\n" call)?` : ''}
call ::= "<tool_call>{\"name\": " (${name}) ", \"arguments\": {\"city\": \"" [A-Z] [a-z]{1,12} "\"}}</tool_call>"`;
}

/** Creates an engine that is closed after the test, so that a test that fails leaves no process behind. */
export function createBuiltinFor(test: TestContext, options: Partial<LocalEngineOptions> = {}) {
  const engine = createBuiltin(options);
  test.after(() => engine.close());
  return engine;
}

export function createBuiltin(options: Partial<LocalEngineOptions> = {}) {
  return createLocalEngine({
    ...builtinModel,
    threads: 1,
    // The suites also run on a GPU, except those that need reproducible output, which only the CPU gives.
    ...(process.env.MILLRACE_TEST_GPU === '1' && {
      borrowGpu: createGpuLeases(null, pino({ level: 'silent' })),
    }),
    grammars: { compile: async (request) => ({ grammar: toHandwritten(request) }) },
    ...options,
  });
}

function toHandwritten(request: GrammarRequest): string {
  if (request.kind === 'json_object') return object;
  // A test may put the grammar into its schema.
  if (request.kind === 'json_schema') return (request.schema as { gbnf?: string }).gbnf ?? truth;
  if (request.kind !== 'tool_calls') throw new Error(`No grammar is written for ${request.kind}`);
  const names = request.tools.map(({ name }) => name);
  return weatherCalls(names, request.parallel);
}

export function chat(body: Partial<ChatRequest> | string): Task {
  const given = typeof body === 'string' ? { messages: toMessages(body) } : body;
  return { kind: 'chat', body: { model: 'm', temperature: 0, messages: [], ...given } };
}

export function toMessages(content: string): ChatRequest['messages'] {
  return [{ role: 'user', content }];
}

export function completion(body: Partial<CompletionRequest>): Task {
  return { kind: 'completion', body: { model: 'm', temperature: 0, prompt: 'Once', ...body } };
}

export const call = newCall;
export const collect = readStream;

export async function completionOf(engine: Engine, body: Partial<CompletionRequest>) {
  const response = await engine.respond(completion(body), call());
  return {
    usage: response.usage,
    choices: response.choices.map((choice) => {
      if ('message' in choice) throw new Error('Got a chat in response to a completion');
      return choice;
    }),
  };
}

export async function chatOf(engine: Engine, body: Partial<ChatRequest> | string) {
  const response = await engine.respond(chat(body), call());
  return {
    usage: response.usage,
    choices: response.choices.map((choice) => {
      if ('text' in choice) throw new Error('Got a completion in response to a chat');
      return choice;
    }),
  };
}

/** Waits for a condition of another process; fails loudly instead of hanging. */
export async function until(condition: () => boolean, timeoutMs = 60_000): Promise<void> {
  const start = performance.now();
  while (!condition()) {
    if (performance.now() - start > timeoutMs) throw new Error('It did not come true in time');
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
