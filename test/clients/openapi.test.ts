// The API description passes a linter, and a client generated from it compiles. The tools are not the product's
// dependencies: they need another version of TypeScript.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { makeFolder } from '#test/support/process.ts';
import { startTestServer } from '#test/support/server.ts';

const tools = process.env.MILLRACE_TEST_OPENAPI_TOOLS;
const skip =
  tools === undefined &&
  'set MILLRACE_TEST_OPENAPI_TOOLS to a folder with test/clients/openapi/package.json installed';

const run = promisify(execFile);

interface Linter {
  createConfig(config: object): Promise<object>;
  lintFromString(options: {
    source: string;
    config: object;
  }): Promise<
    { severity: string; ruleId: string; message: string; location: { pointer?: string }[] }[]
  >;
}

async function readDocument(): Promise<string> {
  const server = await startTestServer();
  return (await fetch(`${server.url}/openapi.json`)).text();
}

describe('OpenAPI tools', { skip }, () => {
  test('the description passes the linter’s recommended rules', async () => {
    const { createConfig, lintFromString } = createRequire(join(tools ?? '', 'package.json'))(
      '@redocly/openapi-core',
    ) as Linter;
    const config = await createConfig({ extends: ['recommended'] });
    const problems = await lintFromString({ source: await readDocument(), config });
    assert.deepEqual(
      problems.map(({ severity, ruleId, message, location }) => [
        severity,
        ruleId,
        message,
        location[0]?.pointer,
      ]),
      [],
    );
  });

  test('a client that openapi-typescript generates compiles and knows the operations', async () => {
    const folder = makeFolder();
    const file = (name: string) => join(folder, name);
    writeFileSync(file('openapi.json'), await readDocument());
    const tool = (name: string, args: string[]) =>
      run(process.execPath, [join(tools ?? '', name), ...args], { cwd: folder });
    await tool('node_modules/openapi-typescript/bin/cli.js', ['openapi.json', '-o', 'client.ts']);
    writeFileSync(
      file('use.ts'),
      `import type { operations } from './client.ts';
type Chat = operations['answerAConversation'];
export const body: Chat['requestBody']['content']['application/json'] = {
  model: 'llama3.1-8b-instruct',
  messages: [{ role: 'user', content: 'Hi' }],
};
export const code = (error: Chat['responses'][404]['content']['application/json']) => error.error.code;
// @ts-expect-error: a body needs its messages.
export const wrong: Chat['requestBody']['content']['application/json'] = { model: 'x' };
`,
    );
    const options = ['--noEmit', '--strict', '--allowImportingTsExtensions', '--skipLibCheck'];
    const { stdout } = await tool('node_modules/typescript/bin/tsc', [...options, 'use.ts']);
    assert.equal(stdout, '');
  });
});
