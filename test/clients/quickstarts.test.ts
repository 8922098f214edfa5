// The programs of docs/quickstarts.md, extracted and run against a server with the built-in model.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { makeFolder, serveMillrace } from '#test/support/process.ts';

const root = join(import.meta.dirname, '../..');
const run = promisify(execFile);
const python = process.env.MILLRACE_TEST_SKYPILOT;

interface Block {
  section: string;
  language: string;
  code: string;
}

function readBlocks(): Block[] {
  const sections = readFileSync(join(root, 'docs/quickstarts.md'), 'utf8').split(/^## /m).slice(1);
  return sections.flatMap((text) =>
    [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = '']) => ({
      section: text.slice(0, text.indexOf('\n')),
      language,
      code,
    })),
  );
}

const blocks = readBlocks();
const findBlock = (section: string) =>
  blocks.find((block) => block.section === section) ?? assert.fail(section);

let started: Promise<{ url: string; key: string }> | undefined;
function startServer() {
  started ??= serveMillrace().then(({ url, stdout }) => ({
    url,
    key: /First API key\s+(\S+)/.exec(stdout())?.[1] ?? '',
  }));
  return started;
}

async function runBlock({ language, code }: Block): Promise<string> {
  const { url, key } = await startServer();
  const folder = makeFolder();
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const file = join(folder, `program.${language === 'ts' ? 'mts' : language}`);
  writeFileSync(file, code);
  const programs: Record<string, string> = {
    sh: 'bash',
    ts: process.execPath,
    python: python ?? 'python3',
  };
  const env = { ...process.env, MILLRACE_URL: url, MILLRACE_API_KEY: key };
  const { stdout } = await run(programs[language] ?? assert.fail(language), [file], { env });
  return stdout;
}

describe('quickstarts', () => {
  for (const block of blocks.filter(({ language }) => ['sh', 'ts', 'python'].includes(language))) {
    const skip =
      block.language === 'python' &&
      python === undefined &&
      'MILLRACE_TEST_SKYPILOT does not name a Python that has openai';
    test(`${block.section}: the ${block.language} program prints an answer`, { skip }, async () => {
      assert.match(await runBlock(block), /\w/);
    });
  }

  test('Open WebUI: its settings lead to the list of models', async () => {
    const { url, key } = await startServer();
    const settings = Object.fromEntries(
      findBlock('Open WebUI')
        .code.trim()
        .split('\n')
        .map((line) => line.split('=', 2) as [string, string]),
    );
    assert.equal(settings.OPENAI_API_KEY, 'secret_...');
    const base = settings.OPENAI_API_BASE_URL?.replace('http://127.0.0.1:8080', url);
    const response = await fetch(`${base}/models`, { headers: { authorization: `Bearer ${key}` } });
    const { data } = (await response.json()) as { data: { id: string }[] };
    assert(data.some(({ id }) => id === 'llama3.1-8b-instruct'));
  });

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
