// millrace open: the browser on a desktop, the address everywhere else.

import assert from 'node:assert';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { callMillrace, makeFolder } from '#test/support/process.ts';
import { typeMillrace } from '#test/support/terminal.ts';

const url = 'http://127.0.0.1:8099';

/** A folder with a program that opens addresses: it writes them to a file, or fails. */
function makeOpener(exitCode: number) {
  const folder = makeFolder();
  const opened = join(folder, 'opened');
  for (const name of ['xdg-open', 'open']) {
    const file = join(folder, name);
    writeFileSync(file, `#!/bin/sh\nprintf '%s' "$1" > '${opened}'\nexit ${exitCode}\n`);
    chmodSync(file, 0o755);
  }
  const env = {
    HOME: folder,
    MILLRACE_URL: url,
    PATH: `${folder}:${process.env.PATH ?? ''}`,
    DISPLAY: ':0',
  };
  return { env, opened: () => readFileSync(opened, 'utf8') };
}

describe('millrace open', () => {
  test('opens the page in the browser', async () => {
    const { env, opened } = makeOpener(0);
    const { code, screen } = await typeMillrace(env, ['open', 'keys']);
    assert.equal(code, 0, screen);
    assert.match(screen, /^Opened http:\/\/127\.0\.0\.1:8099\/#\/api-keys/);
    assert.equal(opened(), `${url}/#/api-keys`);
  });

  test('prints the address if the browser fails, or there is no display', async () => {
    const { env } = makeOpener(3);
    const failed = await typeMillrace(env, ['open', 'docs']);
    assert.deepEqual([failed.code, failed.screen.trim()], [0, `${url}/docs`]);
    const { DISPLAY: _display, ...headless } = makeOpener(0).env;
    const none = await typeMillrace(headless, ['open']);
    assert.deepEqual([none.code, none.screen.trim()], [0, `${url}/`]);
  });

  test('prints the address in a pipe, and refuses an unknown page with the known ones', async () => {
    const { env } = makeOpener(0);
    const piped = await callMillrace(['open', 'playground'], { env });
    assert.deepEqual([piped.code, piped.stdout], [0, `${url}/#/playground\n`]);
    const json = await callMillrace(['open', 'usage', '--json'], { env });
    assert.deepEqual(JSON.parse(json.stdout), { url: `${url}/#/usage` });
    const deployments = await callMillrace(['open', 'deployments'], { env });
    assert.equal(deployments.stdout, `${url}/#/deployments\n`);
    const unknown = await callMillrace(['open', 'kitchen'], { env });
    assert.equal(unknown.code, 2);
    assert.match(unknown.stderr, /Allowed choices are home, playground, /);
  });
});

test('audit refuses an unknown action with the known ones', async () => {
  const { code, stderr } = await callMillrace(['audit', '--action', 'instance.exploded']);
  assert.equal(code, 2);
  assert.match(stderr, /Known actions: account\.created, .*instance\.created, /);
});
