// A server whose machines have no network says so, with the command that changes it: in the start-up table, in
// `hosts check`, on the Firewall page and on the launch page. It runs as an ordinary user, whose machines have none.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import type { HostChecks } from '#cloud/hosts/schema.ts';
import { webFolder } from '#server/dashboard-build.ts';
import { describeInBrowser, findViolations, noBrowser, openPage } from '#test/support/browser.ts';
import { needsSandbox } from '#test/support/cloud/sandbox-programs.ts';
import { password, signInAsOwner, waitForHome } from '#test/support/dashboard.ts';
import { call, signIn } from '#test/support/installation.ts';
import {
  callMillrace,
  makeFolder,
  type RunningProcess,
  readFirstSecret,
  serveMillrace,
} from '#test/support/process.ts';

const nobody = process.getuid?.() === 0 ? 65_534 : undefined;
const sentence =
  "Machines have no internet access and can't reach each other, because the server is not root. " +
  'Run `sudo ./millrace serve`.';
/** On a page, the command is set in code. */
const shown = sentence.replaceAll('`', '');

describeInBrowser(
  'a server whose machines have no network',
  () => {
    let server: RunningProcess;
    let cookie: string;
    before(async () => {
      const folder = makeFolder();
      chmodSync(folder, 0o755);
      const config = join(folder, 'millrace.yaml');
      writeFileSync(config, 'inference:\n  preload: false\ncloud:\n  driver: sandbox\n');
      // The server's user can't write to the folder of the sources.
      const build = spawn(process.execPath, [join(webFolder, 'build.ts')], { stdio: 'inherit' });
      assert.deepEqual(await once(build, 'exit'), [0, null]);
      server = await serveMillrace(['--config', config], {}, 'pipe', nobody);
      const token = readFirstSecret(server.stdout(), 'Set-up link').split('/').at(-1);
      cookie = await signIn(server.url, 'join', { token, email: 'owner@example.com' });
    });

    test('says so in the start-up table', () => {
      assert.ok(server.stdout().includes(`  Network        ${sentence}\n`), server.stdout());
    });

    test('says so in `hosts check`, which fails', async () => {
      const home = makeFolder();
      const saved = join(home, '.config', 'millrace');
      mkdirSync(saved, { recursive: true });
      const session = /millrace_session=([^;]+)/.exec(cookie)?.[1];
      writeFileSync(join(saved, 'session.json'), JSON.stringify({ url: server.url, session }));
      const env = { HOME: home, MILLRACE_URL: server.url };
      const { code, stdout } = await callMillrace(['hosts', 'check'], { env });
      assert.ok(stdout.includes(`  FAIL  network       ${sentence}\n`), stdout);
      assert.equal(code, 1);
      const json = await callMillrace(['hosts', 'check', '--json'], { env });
      const [{ checks }] = JSON.parse(json.stdout) as [HostChecks];
      assert.equal(checks.find(({ name }) => name === 'network')?.message, sentence);
    });

    test('says so to every user of its API', async () => {
      const notices = await call(`${server.url}/dashboard/api/network-notices`, { cookie });
      assert.deepEqual(notices, { data: [{ region: 'us-west-1', message: sentence }] });
    });

    test('says so on the Firewall page and on the launch page', { skip: noBrowser }, async () => {
      const { page } = await openPage({ reducedMotion: 'reduce' });
      await page.goto(server.url);
      await signInAsOwner(page, password);
      await waitForHome(page);
      await page.getByRole('link', { name: 'Firewall' }).click();
      await page.getByRole('note').getByText(`us-west-1: ${shown}`).waitFor();
      await page.getByRole('note').locator('code', { hasText: 'sudo ./millrace serve' }).waitFor();
      assert.deepEqual(await findViolations(page), []);
      await page.goto(`${server.url}/#/machines/new`);
      await page.getByRole('radiogroup', { name: 'Type' }).getByRole('radio').first().click();
      await page.getByRole('combobox', { name: 'Image' }).waitFor();
      await page.getByRole('note').getByText(shown).waitFor();
      assert.deepEqual(await findViolations(page), []);
    });
  },
  { skip: needsSandbox() },
);
