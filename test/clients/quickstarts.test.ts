// The programs of docs/quickstarts.md, extracted and run against a server with the built-in model.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { readBlocks, runBlock } from '#test/support/doc-programs.ts';
import { readFirstSecret, serveMillrace } from '#test/support/process.ts';
import { needs } from '#test/support/programs.ts';

const python = process.env.MILLRACE_TEST_SKYPILOT;
/** The first block sets the environment. */
const blocks = readBlocks('quickstarts.md').filter(({ section }) => section !== 'Quickstarts');
const findBlock = (section: string) =>
  blocks.find((block) => block.section === section) ?? assert.fail(section);

let started: Promise<{ url: string; key: string }> | undefined;
function startServer() {
  started ??= serveMillrace().then(({ url, stdout }) => ({
    url,
    key: readFirstSecret(stdout(), 'First API key'),
  }));
  return started;
}

describe('quickstarts', () => {
  for (const block of blocks.filter(({ language }) => ['sh', 'ts', 'python'].includes(language))) {
    const skips: Record<string, string | false> = {
      sh: needs('curl'),
      python:
        python === undefined && 'MILLRACE_TEST_SKYPILOT does not name a Python that has openai',
    };
    const skip = skips[block.language] ?? false;
    test(`${block.section}: the ${block.language} program prints an answer`, { skip }, async () => {
      assert.match(await runBlock(block, await startServer(), { python }), /\w/);
    });
  }

  test('Continue: its settings lead to a streamed answer', async () => {
    const { url, key } = await startServer();
    const { models } = parse(findBlock('Continue').code) as {
      models: { provider: string; model: string; apiBase: string }[];
    };
    const [{ provider, model, apiBase }] = models as [(typeof models)[0]];
    assert.equal(provider, 'openai');
    const base = apiBase.replace('http://127.0.0.1:8080', url);
    const response = await fetch(`${base}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model,
        stream: true,
        max_tokens: 16,
        messages: [{ role: 'user', content: 'Hello!' }],
      }),
    });
    assert.match(await response.text(), /data: \[DONE\]/);
  });
});
