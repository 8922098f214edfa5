// LangChain against the real server and the real model: only the base address and the key are changed.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { frameworks, needsFrameworks, readProgram, runBlock } from '#test/support/doc-programs.ts';
import { startTestServer } from '#test/support/server.ts';

describe('LangChain', { skip: needsFrameworks }, () => {
  test('chats, streams, returns objects of a schema and calls tools', async () => {
    const server = await startTestServer();
    const program = readProgram('test/clients/frameworks/langchain.ts');
    const printed = await runBlock(program, server, { packages: frameworks });
    const { answer, ...results } = Object.fromEntries(
      printed
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as [string, unknown]),
    );
    const paris = 'The capital of France is Paris.';
    assert.deepEqual(results, {
      invoke: paris,
      stream: paris,
      jsonSchema: true,
      functionCalling: true,
      call: 'get_weather',
    });
    assert(String(answer).length > 0);
  });
});
