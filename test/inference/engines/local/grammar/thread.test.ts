// GrammarCompiler are compiled off the main thread, with the words of the compiler, and are cached.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { compileGrammar } from '#inference/engines/local/grammar-thread/compile-grammar.ts';
import type { GrammarRequest } from '#inference/engines/local/grammar-thread/grammar-compiler.ts';
import { createGrammarThread } from '#inference/engines/local/grammar-thread/grammar-thread.ts';
import { systemClock } from '#lib/clock.ts';
import { startTestServer } from '#test/support/server.ts';

const caller = { caller: 'a', priority: 0, signal: new AbortController().signal };

function startThread(t: TestContext) {
  const thread = createGrammarThread(systemClock);
  t.after(() => thread.close());
  return (request: GrammarRequest) => thread.compile(request, caller);
}

const properties = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, { type: 'integer' }]));

const requests: Record<string, GrammarRequest> = {
  'any object': { kind: 'json_object' },
  'a schema': { kind: 'json_schema', schema: { properties: properties(3) } },
  tools: {
    kind: 'tool_calls',
    tools: [{ name: 'now', parameters: { type: 'object', properties: properties(2) } }],
    parallel: true,
  },
  'a schema that is refused': { kind: 'json_schema', schema: { properties: { a: { not: {} } } } },
  'a pattern that is refused': {
    kind: 'json_schema',
    schema: { type: 'string', pattern: '^(a|b)*a(a|b){12}$' },
  },
};

for (const [name, request] of Object.entries(requests)) {
  test(`the thread compiles like the compiler: ${name}`, async (t) => {
    assert.deepEqual(await startThread(t)(request), compileGrammar(request));
  });
}

test('the event loop turns while a grammar is compiled', async (t) => {
  let isCompiled = false;
  const compiling = startThread(t)(requests.tools!).then(() => {
    isCompiled = true;
  });
  await setImmediate();
  assert.equal(isCompiled, false);
  await compiling;
});

test('a schema is compiled once, and refused once', async (t) => {
  const compile = startThread(t);
  for (const request of [requests['a schema']!, requests['a schema that is refused']!])
    assert.equal(await compile(request), await compile(structuredClone(request)));
});

test('a schema that is too large or too deep for the thread is refused', async (t) => {
  const compile = startThread(t);
  const long = { description: 'x'.repeat(2_000_000) };
  let deep: unknown = {};
  for (let depth = 0; depth < 200_000; depth++) deep = { items: deep };
  for (const schema of [long, deep])
    assert.deepEqual(await compile({ kind: 'json_schema', schema }), {
      refusal: 'the schema is too large for a grammar',
    });
});

test('requests with many strict tools delay no other request', async () => {
  const server = await startTestServer();
  const toTool = (name: string, parameters: object) => ({
    type: 'function',
    function: { name, strict: true, parameters: { type: 'object', ...parameters } },
  });
  let answered = 0;
  // The last tool can't be enforced, so that a request is answered as soon as its grammar was compiled.
  const asking = Array.from({ length: 20 }, async (_, request) => {
    const tools = Array.from({ length: 127 }, (_, at) =>
      toTool(`tool_${request}_${at}`, { properties: properties(4) }),
    );
    const response = await server.fetch('/v1/chat/completions', {
      json: {
        model: 'hermes3-8b',
        messages: [{ role: 'user', content: 'Go' }],
        tools: [...tools, toTool('last', { not: {} })],
      },
    });
    answered++;
    return { status: response.status, body: (await response.json()) as object };
  });
  await Promise.race(asking);
  assert.equal((await fetch(`${server.url}/healthz`)).status, 200);
  assert.ok(answered < asking.length, 'every grammar was compiled before /healthz was answered');
  for (const { status, body } of await Promise.all(asking)) {
    assert.equal(status, 400);
    assert.match(JSON.stringify(body), /tools can't be enforced: 'last.not'/);
  }
});
