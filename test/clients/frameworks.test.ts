// The programs in the pages about frameworks and applications, against a model that calls tools.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import {
  type Block,
  frameworks,
  needsFrameworks,
  readBlocks,
  readProgram,
  runBlock,
} from '#test/support/doc-programs.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';
import { startToolModel } from '#test/support/tool-model.ts';
import { toFrameworkCode } from '../../web/src/code-samples/frameworks.ts';

const model = 'llama3.1-8b-instruct';

describe('pages about clients', () => {
  let server: TestServer;
  before(async () => {
    const backends = [
      {
        name: 'tools',
        model: 'tools',
        url: await startToolModel({ river: 'Elbe', city: 'Paris' }),
      },
    ];
    server = await startTestServer({ config: { models: { catalog: { [model]: { backends } } } } });
  });

  /** The AI SDK is installed with the product's tests, the others are not. */
  const skipFor = (name: string) => !/^ai.sdk/i.test(name) && needsFrameworks;
  const run = (name: string, block: Block) =>
    runBlock(block, server, /^ai.sdk/i.test(name) ? {} : { packages: frameworks });

  for (const page of ['openai-agents.md', 'langchain.md', 'ai-sdk.md']) {
    const programs = readBlocks(page).filter(({ language }) => language === 'ts');
    const rule = `${page}: one program chats, the other one calls a tool`;
    test(rule, { skip: skipFor(page) }, async () => {
      assert.equal(programs.length, 2);
      const [chat, tools] = await Promise.all(programs.map((one) => run(page, one)));
      assert.match(chat ?? '', /^Hello\./);
      assert.match(tools ?? '', /The tool says .*Elbe: 312 cm/);
    });
  }

  for (const name of ['openai-agents', 'LangChain', 'AI SDK'] as const) {
    test(`the dashboard's sample for ${name} chats`, { skip: skipFor(name) }, async () => {
      const code = toFrameworkCode(server.url, model)[name] ?? assert.fail(name);
      assert.equal(await run(name, { section: name, language: 'ts', code }), 'Hello.\n');
    });
  }

  test('the dashboard has samples for these frameworks, and settings of Open WebUI', () => {
    const { 'Open WebUI': settings, ...programs } = toFrameworkCode(server.url, model);
    assert.match(settings ?? '', /^OPENAI_API_BASE_URL=http.*\/v1$/m);
    assert.deepEqual(Object.keys(programs), ['openai-agents', 'LangChain', 'AI SDK']);
  });

  test('the example of LangChain chats and calls its tool', { skip: needsFrameworks }, async () => {
    const printed = await run('langchain', readProgram('examples/langchain/chat.ts'));
    assert.match(printed, /^Hello\./);
    assert.match(printed, /The model calls get_weather/);
  });

  test('open-webui.md: its settings lead to the list of models and to a chat', async () => {
    const code = readBlocks('open-webui.md').find(({ language }) => language === 'ini')?.code ?? '';
    const settings = Object.fromEntries(
      code
        .trim()
        .split('\n')
        .map((line) => line.split('=', 2) as [string, string]),
    );
    assert.equal(settings.OPENAI_API_KEY, 'secret_...');
    const path = settings.OPENAI_API_BASE_URL?.replace('http://127.0.0.1:8080', '');
    const listed = await server.fetch(`${path}/models`);
    const { data } = (await listed.json()) as { data: { id: string }[] };
    assert(data.some(({ id }) => id === model));
    const messages = [{ role: 'user', content: 'Hello!' }];
    const chat = { model, stream: true, stream_options: { include_usage: true }, messages };
    const response = await server.fetch(`${path}/chat/completions`, { json: chat });
    assert.match(await response.text(), /Hello\.[\s\S]*data: \[DONE\]/);
  });
});
