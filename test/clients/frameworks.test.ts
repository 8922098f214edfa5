// The programs in the pages about frameworks and applications, against a model that calls tools.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { readBlocks, runBlock } from '#test/support/doc-programs.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';
import { startToolModel } from '#test/support/tool-model.ts';
import { toFrameworkCode } from '../../web/src/code-samples/frameworks.ts';

const model = 'llama3.1-8b-instruct';

describe('pages about clients', () => {
  let server: TestServer;
  before(async () => {
    const backends = [
      { name: 'tools', model: 'tools', url: await startToolModel({ river: 'Elbe' }) },
    ];
    server = await startTestServer({ config: { models: { catalog: { [model]: { backends } } } } });
  });

  for (const page of ['openai-agents.md', 'langchain.md', 'ai-sdk.md']) {
    const programs = readBlocks(page).filter(({ language }) => language === 'ts');
    test(`${page}: one program chats, the other one calls a tool`, async () => {
      assert.equal(programs.length, 2);
      const [chat, tools] = await Promise.all(programs.map((one) => runBlock(one, server)));
      assert.match(chat ?? '', /^Hello\./);
      assert.match(tools ?? '', /The tool says .*Elbe: 312 cm/);
    });
  }

  test('the samples of the dashboard for these frameworks chat', async () => {
    const { 'Open WebUI': settings, ...programs } = toFrameworkCode(server.url, model);
    assert.match(settings ?? '', /^OPENAI_API_BASE_URL=http.*\/v1$/m);
    assert.deepEqual(Object.keys(programs), ['openai-agents', 'LangChain', 'AI SDK']);
    const blocks = Object.values(programs).map((code) => ({ section: '', language: 'ts', code }));
    const printed = await Promise.all(blocks.map((block) => runBlock(block, server)));
    assert.deepEqual(printed, ['Hello.\n', 'Hello.\n', 'Hello.\n']);
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
