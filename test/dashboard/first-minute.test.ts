// The first minute of a new owner: from the setup link to a working key, and signing in again.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { before, test } from 'node:test';
import { describeInBrowser, findViolations, noBrowser, openPage } from '#test/support/browser.ts';
import {
  type Dashboard,
  joinWith,
  signInAsOwner,
  signOut,
  startServer,
} from '#test/support/dashboard.ts';
import { needs } from '#test/support/programs.ts';

describeInBrowser(
  'the first minute',
  () => {
    let dashboard: Dashboard;
    before(async () => {
      const server = await startServer();
      dashboard = { ...server, ...(await openPage()) };
      await joinWith(dashboard.page, server.setupLink, 'owner@example.com');
    });

    const listModels = (key: string) =>
      fetch(`${dashboard.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });

    test('the setup link leads to the home page, whose code has the real address', async () => {
      const { page } = dashboard;
      assert.equal(await page.title(), 'Home · Millrace');
      for (const name of [/^Chat with a model/, /^Create an API key/, /^Launch a machine/]) {
        await page.getByRole('link', { name }).waitFor();
      }
      for (const language of ['Python', 'TypeScript', 'curl']) {
        await page.getByRole('tab', { name: language }).click();
        const code = await page.getByRole('tabpanel').textContent();
        assert.ok(code?.includes(`${dashboard.url}/v1`), `${language} lacks the address: ${code}`);
      }
    });

    test('a new key is put into the code, which then runs as it is', async () => {
      const { page } = dashboard;
      await page.getByRole('button', { name: 'Create API key' }).click();
      const key = await page.getByLabel('Your new API key (shown only once)').innerText();
      for (const language of ['Python', 'TypeScript', 'curl']) {
        await page.getByRole('tab', { name: language }).click();
        assert.ok((await page.getByRole('tabpanel').innerText()).includes(key), language);
      }
      const chat = await page.getByRole('tabpanel').innerText();
      const { stdout: answer } = await run('sh', ['-c', chat]);
      assert.ok(JSON.parse(answer).choices[0].message.content, answer);

      await page.getByText('Launch a machine', { exact: true }).last().click();
      assert.deepEqual(await findViolations(page), []);
      const launches = [
        { language: 'curl', program: ['sh', '-c'] },
        { language: 'Python', program: ['python3', '-c'] },
        {
          language: 'TypeScript',
          program: [process.execPath, '--input-type=module-typescript', '-e'],
        },
      ];
      for (const { language, program } of launches) {
        await page.getByRole('tab', { name: language }).click();
        const code = await page.getByRole('tabpanel').innerText();
        assert.ok(code.includes(key), language);
        const [file = '', ...options] = program;
        // The server understands the launch. It refuses it for the missing SSH key, or by its rate limit.
        const { stdout, stderr } = await run(file, [...options, code]);
        const output = `${stdout}${stderr}`;
        assert.match(
          output,
          /SSH key with name|Too many|HTTP Error (404|429)/,
          `${language}: ${output}`,
        );
      }
      await page.reload();
      await page.getByRole('button', { name: 'Create API key' }).waitFor();
      assert.equal(await page.getByText(key).count(), 0, 'the key is still shown');
      assert.ok(
        !(await page.evaluate<string>('JSON.stringify(localStorage)')).includes(key.slice(-20)),
      );
    });

    test('a new key works, is shown once, and stops working when it is revoked', async () => {
      const { page } = dashboard;
      await page.getByRole('link', { name: 'Create an API key' }).click();
      await page.getByLabel('Label').fill('my program');
      await page.getByRole('checkbox', { name: 'Machines' }).uncheck();
      await page.getByRole('button', { name: 'Create API key' }).click();
      const key = await page.getByLabel('my program', { exact: true }).innerText();
      assert.match(key, /^secret_my-program_[0-9a-f]{32}\.[A-Za-z0-9]{32}$/);
      assert.equal((await listModels(key)).status, 200);
      assert.deepEqual(await findViolations(page), []);

      await page.getByRole('button', { name: 'I saved the key' }).click();
      await page.getByText(key).waitFor({ state: 'detached' });
      const row = page.getByRole('row', { name: /my program/ });
      assert.match(await row.innerText(), /Models/);
      assert.doesNotMatch(await row.innerText(), /Machines/);

      await page.getByRole('button', { name: 'Revoke my program' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
      assert.equal((await listModels(key)).status, 200, 'canceling revoked the key');
      await page.getByRole('button', { name: 'Revoke my program' }).click();
      await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
      await row.waitFor({ state: 'detached' });
      assert.equal((await listModels(key)).status, 401);
    });

    test('the back button closes a dialog and goes back page by page', async () => {
      const { page } = dashboard;
      await page.goto(`${dashboard.url}/#/models`);
      await page.getByRole('link', { name: 'API keys', exact: true }).click();
      await page.getByRole('link', { name: 'Create API key' }).click();
      await page.getByRole('dialog').waitFor();
      await page.goBack();
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await page.goBack();
      await page.getByRole('heading', { name: 'Models', level: 1 }).waitFor();
      assert.equal(await page.title(), 'Models · Millrace');
    });

    test('a used link says that it no longer works', async () => {
      const { page } = await openPage();
      await page.goto(dashboard.setupLink);
      await page.getByRole('heading', { name: 'This link no longer works' }).waitFor();
    });

    test('a wrong password is refused with an explanation and the request ID', async () => {
      const { page } = await openPage();
      await page.goto(`${dashboard.url}/#/api-keys`);
      await signInAsOwner(page, 'wrong wrong wrong');
      const notice = await page.getByRole('alert').innerText();
      assert.match(notice, /email address or the password is wrong/);
      assert.match(notice, /Request ID [0-9a-f]{32}/);

      await signInAsOwner(page);
      await page.getByRole('heading', { name: 'API keys', level: 1 }).waitFor();
    });

    test('when the session has ended, the sign-in form replaces the page', async () => {
      const { page } = await openPage();
      await page.goto(`${dashboard.url}/#/models`);
      await signInAsOwner(page);
      await page.getByRole('table', { name: 'Models' }).waitFor();
      await page.context().clearCookies();
      await page.getByRole('link', { name: 'Team' }).click();
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      await page.getByText(/^Your session has ended\. Sign in to return to the page/).waitFor();
      await signInAsOwner(page);
      await page.getByRole('heading', { name: 'Team', level: 1 }).waitFor();
      await signOut(page);
      await page.getByRole('heading', { name: 'Sign in' }).waitFor();
      assert.equal(await page.getByText('Your session has ended').count(), 0);
    });

    test('a generated SSH key is downloaded once and then listed', async () => {
      const { page } = dashboard;
      await page.goto(`${dashboard.url}/#/ssh-keys/new`);
      await page.getByText('Generate a key pair').click();
      await page.getByLabel('Name').fill('my laptop');
      await page.getByRole('button', { name: 'Generate SSH key' }).click();
      const downloading = page.waitForEvent('download');
      await page.getByRole('button', { name: 'Download my-laptop.pem' }).click();
      const stream = await (await downloading).createReadStream();
      const pem = (await stream.toArray()).join('');
      assert.match(pem, /^-----BEGIN RSA PRIVATE KEY-----\n/);
      await page.getByRole('button', { name: 'Done' }).click();
      await page.getByRole('row', { name: /my laptop/ }).waitFor();
    });

    test('the audit log lists the changes and can be filtered by action', async () => {
      const { page } = dashboard;
      await page.getByRole('link', { name: 'Audit log' }).click();
      const table = page.getByRole('table', { name: 'Audit log' });
      await table.getByText('User joined').waitFor();
      await page.getByRole('combobox', { name: 'Action', exact: true }).click();
      await page.getByRole('option', { name: 'API key revoked' }).click();
      await table.getByText('User joined').waitFor({ state: 'detached' });
      const row = await table.getByRole('row', { name: /API key revoked/ }).innerText();
      assert.match(row, /owner@example\.com/);
      assert.match(row, /my program/);
    });

    test('the page can be used with the keyboard alone', async () => {
      const { page } = dashboard;
      await page.goto(`${dashboard.url}/#/`);
      await page.reload();
      await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
      await page.getByRole('link', { name: /^Create an API key/ }).waitFor();
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      const focused = page.locator(':focus');
      const reached: string[] = [];
      while (!reached.at(-1)?.startsWith('Create an API key')) {
        assert.ok(reached.length < 20, `the step is not reached: ${reached}`);
        await page.keyboard.press('Tab');
        reached.push(await focused.innerText());
      }
      assert.ok(
        reached.some((text) => text.startsWith('Chat with a model')),
        `${reached}`,
      );
      await page.keyboard.press('Enter');
      await page.getByRole('dialog').waitFor();
      assert.equal(await focused.getAttribute('name'), 'label');
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    });

    test('the console shows no errors, and the page sent requests to no other host', () => {
      assert.deepEqual(dashboard.consoleErrors, []);
      assert.deepEqual([...dashboard.hosts].filter(Boolean), [new URL(dashboard.url).host]);
    });
  },
  { skip: noBrowser || needs('curl', 'python3') },
);

/** Resolves to what it wrote, whatever its exit code. */
const run = (file: string, args: string[]): Promise<{ stdout: string; stderr: string }> =>
  new Promise((resolve) => {
    execFile(file, args, (_error, stdout, stderr) => resolve({ stdout, stderr }));
  });
