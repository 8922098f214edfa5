// In a fresh checkout, where nothing is built, the server listens at once and the page opens when it is ready.

import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { cp, mkdtemp, readdir, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { describeInBrowser, openPage } from '#test/support/browser.ts';
import { readFirstSecret } from '#test/support/process.ts';

const execute = promisify(execFile);
const root = join(import.meta.dirname, '../..');

describeInBrowser('the first start', () => {
  let checkout: string;
  let server: ChildProcess;
  before(async () => {
    checkout = await mkdtemp(join(tmpdir(), 'millrace-checkout-'));
    const isBuilt = (path: string) => path === join(root, 'web', 'dist');
    for (const name of [
      'src',
      'web',
      'docs',
      'model',
      'package.json',
      'package-lock.json',
      'tsconfig.json',
      'millrace',
    ]) {
      await cp(join(root, name), join(checkout, name), {
        recursive: true,
        filter: (path) => !isBuilt(path),
      });
    }
    await symlink(await realpath(join(root, 'node_modules')), join(checkout, 'node_modules'));
  });
  after(async () => {
    server?.kill('SIGKILL');
    await rm(checkout, { recursive: true, force: true });
  });

  test('the page says that the dashboard is being prepared, once for all processes, then opens with the link’s secret', async () => {
    // Opened first: the build takes hardly longer than the browser needs to start.
    const { page, consoleErrors } = await openPage();
    const data = join(checkout, 'data');
    server = spawn(join(checkout, 'millrace'), ['serve', '--port', '0', '--data-dir', data], {
      cwd: checkout,
      env: { PATH: process.env.PATH ?? '' },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let table = '';
    for await (const text of server.stdout ?? []) {
      table += text;
      if (table.includes('API docs')) break;
    }
    // As servers that start at the same time do. Each of them would build for ten seconds of CPU time.
    const build = () => execute(process.execPath, [join(checkout, 'web', 'build.ts')]);
    const others = Promise.all([build(), build()]);
    const link = readFirstSecret(table, 'Set-up link');
    const early = await page.goto(link);
    assert.equal(early?.status(), 503);
    assert.match((await early?.text()) ?? '', /being prepared/);
    assert.equal((await fetch(new URL('/healthz', link))).status, 200);
    await page.getByRole('heading', { name: 'Set up Millrace' }).waitFor({ timeout: 120_000 });
    assert.deepEqual(consoleErrors, []);
    await page.goto(new URL('/help/', link).href);
    await page.getByText('on your own machines').first().waitFor({ timeout: 120_000 });
    const builds = await readdir(join(checkout, 'web', 'dist'));
    assert.match(builds.toSorted().join(' '), /^[0-9a-f]{16} help-[0-9a-f]{16} lock$/);
    const built = (await others).flatMap(({ stdout }) => stdout.match(/^Built .*$/gm) ?? []);
    assert.equal(new Set(built).size, built.length, `each is built once: ${built}`);
  });
});
