// The CLI on a terminal: a real pseudo-terminal, keys as a person presses them, and the exit codes.

import assert from 'node:assert';
import { before, describe, test } from 'node:test';
import { randomGguf } from '#test/support/gguf.ts';
import { startHub } from '#test/support/hub.ts';
import { callMillrace, makeFolder } from '#test/support/process.ts';
import { startTestServer } from '#test/support/server.ts';
import { ctrlC, ctrlD, type Step, typeMillrace } from '#test/support/terminal.ts';
import { until } from '#test/support/until.ts';

const email = 'me@example.com';
const password = 'a long enough password';

describe('the CLI on a terminal', () => {
  let env: Record<string, string>;
  let hub: Awaited<ReturnType<typeof startHub>>;

  before(async () => {
    hub = await startHub();
    hub.add('owner/weights', { 'weights-Q4_K_M.gguf': randomGguf(200_000) });
    const server = await startTestServer({ config: { models: { hub_url: hub.url } } });
    env = { HOME: makeFolder(), MILLRACE_URL: server.url, PATH: process.env.PATH ?? '' };
    const link = server.setupLink ?? '';
    const login = ['login', '--link', link, '--email', email];
    const joined = await callMillrace(login, { env, input: `${password}\n` });
    assert.equal(joined.code, 0, joined.stderr);
  });

  const type = (words: string[], ...steps: Step[]) => typeMillrace(env, words, ...steps);

  const labels = async () => {
    const { stdout } = await callMillrace(['keys', 'list', '--json'], { env });
    return (JSON.parse(stdout) as { label: string }[]).map(({ label }) => label);
  };

  test('login asks for email and password, and masks the password', async () => {
    const { code, screen } = await type(
      ['login'],
      ['Email', `${email}\r`],
      ['Password', `${password}\r`],
    );
    assert.equal(code, 0, screen);
    assert.match(screen, /Signed in to http\S+ as me@example\.com\./);
    assert(!screen.includes(password), screen);
  });

  test('Ctrl-C and Ctrl-D at a question exit 130', async () => {
    for (const key of [ctrlC, ctrlD]) {
      const { code, screen } = await type(['login'], ['Email', key]);
      assert.equal(code, 130, screen);
      assert.match(screen, /Cancelled\. Nothing was changed\./);
    }
  });

  test('a destructive command does nothing unless the answer is yes', async () => {
    const made = await callMillrace(['keys', 'create', 'doomed'], { env });
    assert.equal(made.code, 0, made.stderr);
    const answers = [
      { key: '\r', code: 1, said: 'Nothing was changed.' },
      { key: 'n', code: 1, said: 'Nothing was changed.' },
      { key: ctrlC, code: 130, said: 'Cancelled. Nothing was changed.' },
    ];
    for (const { key, code, said } of answers) {
      const ended = await type(['keys', 'revoke', 'doomed'], ['Revoke API key doomed', key]);
      assert.deepEqual([ended.code, ended.screen.includes(said)], [code, true], ended.screen);
      assert((await labels()).includes('doomed'));
    }
    const ended = await type(['keys', 'revoke', 'doomed'], ['Revoke API key doomed', 'y']);
    assert.equal(ended.code, 0, ended.screen);
    assert(!(await labels()).includes('doomed'));
  });

  test('a name in a question can not control the terminal', async () => {
    const key = (await callMillrace(['keys', 'create', 'cloud'], { env })).stdout.trim();
    const response = await fetch(`${env.MILLRACE_URL}/api/v1/ssh-keys`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'evil\u001b[2Jname' }),
    });
    const { data } = (await response.json()) as { data: { id: string } };
    const { code, raw } = await type(['ssh-keys', 'delete', data.id], ['Delete SSH key', 'y']);
    assert.equal(code, 0, raw);
    assert(!raw.includes('evil\u001b'), raw);
  });

  test('Ctrl-C at a progress bar exits 130, says what continues, and the server goes on', async () => {
    hub.pauseAfter(1_000);
    const { code, screen } = await type(['models', 'pull', 'owner/weights'], ['% ', ctrlC]);
    assert.equal(code, 130, screen);
    assert.match(screen, /Stopped watching\. The server continues the download\. To cancel: /);
    await until('the server is downloading', () => hub.sending() === 1);
    hub.release();
  });
});
