// From the terminal's link to a working key, and back.

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { before, describe, test } from 'node:test';
import {
  findViolations,
  joinBy,
  noBrowser,
  openPage,
  password,
  type Served,
  serve,
  type Watched,
} from '#test/support/browser.ts';

describe('the first minute', { skip: noBrowser }, () => {
  let served: Served;
  let watched: Watched;
  before(async () => {
    served = await serve();
    watched = await openPage();
    await joinBy(watched.page, served.setupLink, 'owner@example.com');
  });

  const listModels = (key: string) =>
    fetch(`${served.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });

  test('the set-up link leads home, where the code has the real address', async () => {
    const { page } = watched;
    assert.equal(await page.title(), 'Home · Millrace');
    for (const name of [/^Chat now/, /^Make an API key/, /^Launch a machine/]) {
      await page.getByRole('link', { name }).waitFor();
    }
    for (const language of ['Python', 'TypeScript', 'curl']) {
      await page.getByRole('tab', { name: language }).click();
      const code = await page.getByRole('tabpanel').textContent();
      assert.ok(code?.includes(`${served.url}/v1`), `${language} lacks the address: ${code}`);
    }
  });

  test('a click puts a real key into the code, which then runs as it stands', async () => {
    const { page } = watched;
    await page.getByRole('button', { name: 'Make a key and put it in' }).click();
    const key = await page.getByLabel('Your new key, shown this once').innerText();
    for (const language of ['Python', 'TypeScript', 'curl']) {
      await page.getByRole('tab', { name: language }).click();
      assert.ok((await page.getByRole('tabpanel').innerText()).includes(key), language);
    }
    const chat = await page.getByRole('tabpanel').innerText();
    const answered = execFileSync('sh', ['-c', chat], { encoding: 'utf8' });
    assert.ok(JSON.parse(answered).choices[0].message.content, answered);

    await page.getByText('Launch a machine', { exact: true }).last().click();
    assert.deepEqual(await findViolations(page), []);
    const launches = [
      { language: 'curl', run: ['sh', '-c'] },
      { language: 'Python', run: ['python3', '-c'] },
      { language: 'TypeScript', run: [process.execPath, '--input-type=module-typescript', '-e'] },
    ];
    for (const { language, run } of launches) {
      await page.getByRole('tab', { name: language }).click();
      const code = await page.getByRole('tabpanel').innerText();
      assert.ok(code.includes(key), language);
      const [program = '', ...before] = run;
      const { stdout, stderr } = spawnSync(program, [...before, code], { encoding: 'utf8' });
      // Understood, and refused for the SSH key that is not there yet, or for coming so soon after another.
      const said = `${stdout}${stderr}`;
      assert.match(said, /SSH key with name|Too many|HTTP Error (404|429)/, `${language}: ${said}`);
    }
    await page.reload();
    await page.getByRole('button', { name: 'Make a key and put it in' }).waitFor();
    assert.equal(await page.getByText(key).count(), 0, 'the key is still there');
    assert.ok(
      !(await page.evaluate<string>('JSON.stringify(localStorage)')).includes(key.slice(-20)),
    );
  });

  test('a key made in the page works, is shown once, and stops when it is revoked', async () => {
    const { page } = watched;
    await page.getByRole('link', { name: 'Make an API key' }).click();
    await page.getByLabel('Label').fill('my program');
    await page.getByRole('checkbox', { name: 'Machines' }).uncheck();
    await page.getByRole('button', { name: 'Make the key' }).click();
    const key = await page.getByLabel('my program', { exact: true }).innerText();
    assert.match(key, /^secret_my-program_[0-9a-f]{32}\.[A-Za-z0-9]{32}$/);
    assert.equal((await listModels(key)).status, 200);
    assert.deepEqual(await findViolations(page), []);

    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByText(key).waitFor({ state: 'detached' });
    const row = page.getByRole('row', { name: /my program/ });
    assert.match(await row.innerText(), /Models/);
    assert.doesNotMatch(await row.innerText(), /Machines/);

    await page.getByRole('button', { name: 'Revoke my program' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    assert.equal((await listModels(key)).status, 200, 'cancelling revoked it');
    await page.getByRole('button', { name: 'Revoke my program' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
    await row.waitFor({ state: 'detached' });
    assert.equal((await listModels(key)).status, 401);
  });

  test('the back button closes a dialog and goes back page by page', async () => {
    const { page } = watched;
    await page.goto(`${served.url}/#/models`);
    await page.getByRole('link', { name: 'API keys', exact: true }).click();
    await page.getByRole('link', { name: 'Make a key' }).click();
    await page.getByRole('dialog').waitFor();
    await page.goBack();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.goBack();
    await page.getByRole('heading', { name: 'Models', level: 1 }).waitFor();
    assert.equal(await page.title(), 'Models · Millrace');
  });

  test('a used link says so', async () => {
    const { page } = await openPage();
    await page.goto(served.setupLink);
    await page.getByRole('heading', { name: 'This link no longer works' }).waitFor();
  });

  test('a wrong password is refused in plain words with the request id', async () => {
    const { page } = await openPage();
    await page.goto(`${served.url}/#/api-keys`);
    await page.getByLabel('E-mail').fill('owner@example.com');
    await page.getByLabel('Password', { exact: true }).fill('wrong wrong wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    const notice = await page.getByRole('alert').innerText();
    assert.match(notice, /e-mail address or the password is wrong/);
    assert.match(notice, /Request id [0-9a-f]{32}/);

    await page.getByLabel('Password', { exact: true }).fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'API keys', level: 1 }).waitFor();
  });

  test('a session that was ended elsewhere asks to sign in, in place', async () => {
    const { page } = await openPage();
    await page.goto(`${served.url}/#/models`);
    await page.getByLabel('E-mail').fill('owner@example.com');
    await page.getByLabel('Password', { exact: true }).fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('table', { name: 'Models' }).waitFor();
    await page.context().clearCookies();
    await page.getByRole('link', { name: 'Team' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  });

  test('a generated SSH key is downloaded once and then in the list', async () => {
    const { page } = watched;
    await page.goto(`${served.url}/#/ssh-keys/new`);
    await page.getByText('Make one for me').click();
    await page.getByLabel('Name').fill('my laptop');
    await page.getByRole('button', { name: 'Make the key' }).click();
    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download my-laptop.pem' }).click();
    const stream = await (await downloading).createReadStream();
    const pem = (await stream.toArray()).join('');
    assert.match(pem, /^-----BEGIN RSA PRIVATE KEY-----\n/);
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('row', { name: /my laptop/ }).waitFor();
  });

  test('the audit log names the changes and can be narrowed to one kind', async () => {
    const { page } = watched;
    await page.getByRole('link', { name: 'Audit log' }).click();
    const table = page.getByRole('table', { name: 'Audit log' });
    await table.getByText('Person joined').waitFor();
    await page.getByRole('combobox', { name: 'What', exact: true }).click();
    await page.getByRole('option', { name: 'API key revoked' }).click();
    await table.getByText('Person joined').waitFor({ state: 'detached' });
    const row = await table.getByRole('row', { name: /API key revoked/ }).innerText();
    assert.match(row, /owner@example\.com/);
    assert.match(row, /my program/);
  });

  test('the keyboard alone reaches the page and what it offers', async () => {
    const { page } = watched;
    await page.goto(`${served.url}/#/`);
    await page.reload();
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    const focused = page.locator(':focus');
    assert.match(await focused.innerText(), /^Chat now/);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    assert.equal(await focused.getAttribute('name'), 'label');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });

  test('nothing was forbidden by the policy, nothing broke, nobody else was called', () => {
    assert.deepEqual(watched.complaints, []);
    assert.deepEqual([...watched.hosts].filter(Boolean), [new URL(served.url).host]);
  });
});
