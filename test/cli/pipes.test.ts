// Standard output as a pipe: a program reads all of it, or closes it early.

import assert from 'node:assert';
import { execFile } from 'node:child_process';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { listen } from '#test/support/listen.ts';
import { makeFolder, runMillrace } from '#test/support/process.ts';

const millrace = join(import.meta.dirname, '../../millrace');
/** Their list is longer than any pipe holds. */
const keys = Array.from({ length: 20_000 }, (_, index) => ({
  id: index.toString(16).padStart(32, '0'),
  name: `key ${index}`,
  public_key: 'ssh-ed25519 AAAA',
}));

async function startServer(test: TestContext): Promise<Record<string, string>> {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json').end(JSON.stringify({ data: keys }));
  });
  const port = await listen(test, server);
  const MILLRACE_URL = `http://127.0.0.1:${port}`;
  return { HOME: makeFolder(), MILLRACE_URL, MILLRACE_API_KEY: 'secret' };
}

describe('the output of a command in a pipe', () => {
  test('is whole, however long it is', async (test) => {
    const env = await startServer(test);
    const { code, stdout, stderr } = await runMillrace(['ssh-keys', 'list', '--json'], { env });
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), keys);
  });

  test('may be closed by its reader: the command ends without a stack trace', async (test) => {
    const env = { ...(await startServer(test)), PATH: process.env.PATH ?? '' };
    const line = '"$0" ssh-keys list --json | head -n 1';
    const { stdout, stderr } = await promisify(execFile)('sh', ['-c', line, millrace], { env });
    assert.deepEqual([stdout, stderr], ['[\n', '']);
  });
});
