// The first API key and the set-up link: shown on a terminal, and kept in files where the output is kept by something else.

import assert from 'node:assert/strict';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { makeFolder, readFirstSecret, serveMillrace } from '#test/support/process.ts';
import { password } from '#test/support/server.ts';
import { ctrlC, typeMillrace } from '#test/support/terminal.ts';

const modeOf = (file: string) => statSync(file).mode & 0o777;

describe('the secrets of a first start', () => {
  test('are in files of the server’s user if the output is not a terminal', async () => {
    const dataDir = makeFolder();
    const first = await serveMillrace(['--data-dir', dataDir]);
    const key = readFirstSecret(first.stdout(), 'First API key');
    const link = readFirstSecret(first.stdout(), 'Set-up link');
    const output = first.stdout() + first.stderr();
    assert(!output.includes(key) && !output.includes(link.split('/').at(-1) ?? ''), output);
    for (const name of ['first-api-key', 'setup-link'])
      assert.equal(modeOf(join(dataDir, name)), 0o600);
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    assert.equal((await fetch(`${first.url}/v1/models`, { headers })).status, 200);
    first.child.kill('SIGTERM');
    await first.ended;

    const second = await serveMillrace(['--data-dir', dataDir]);
    assert.doesNotMatch(second.stdout(), /First API key/);
    const renewed = readFirstSecret(second.stdout(), 'Set-up link');
    assert.notEqual(renewed, link);
    const joined = await fetch(`${second.url}/dashboard/api/join`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        token: renewed.split('/').at(-1),
        email: 'ann@example.com',
        password,
      }),
    });
    assert.equal(joined.status, 200);
    second.child.kill('SIGTERM');
    await second.ended;

    const third = await serveMillrace(['--data-dir', dataDir]);
    assert.doesNotMatch(third.stdout(), /Set-up link/);
    assert(!existsSync(join(dataDir, 'setup-link')), 'a link that was used is removed');
    assert(existsSync(join(dataDir, 'first-api-key')));
  });

  test('are shown on a terminal, and not written', async () => {
    const dataDir = makeFolder();
    const { screen } = await typeMillrace(
      { PATH: process.env.PATH ?? '', HOME: makeFolder() },
      ['serve', '--port', '0', '--data-dir', dataDir, '--log-level', 'silent'],
      ['API docs', ctrlC],
    );
    assert.match(screen, /Set-up link {4}http\S+\/join\/\S+ {2}\(works once\)/);
    assert.match(screen, /First API key {2}secret_first_/);
    for (const name of ['first-api-key', 'setup-link']) assert(!existsSync(join(dataDir, name)));
  });
});
