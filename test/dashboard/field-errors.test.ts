// What the server or the browser refuses is said at the field that it is about, in words, in every form. The field gets the focus.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { checkAppearance, describeInBrowser, openPage } from '#test/support/browser.ts';
import { type Dashboard, openDashboard, password, post } from '#test/support/dashboard.ts';

const model = 'llama3.1-8b-instruct';

interface Refused {
  path: string;
  /** A choice to click before the fields exist. */
  choose?: string;
  fields: Record<string, string>;
  submit: string;
  /** The label of the field that is marked. */
  at: string;
  text: RegExp;
}

const refused: Refused[] = [
  {
    path: 'api-keys/new',
    fields: { Label: 'a', 'Requests per minute': '9000000000' },
    submit: 'Create API key',
    at: 'Requests per minute',
    text: /^This must be at most \d+, got 9000000000\.$/,
  },
  {
    path: 'api-keys/limits',
    fields: { 'Monthly budget': '2000000' },
    submit: 'Save',
    at: 'Monthly budget',
    text: /^This must be at most 1000000, got 2000000\.$/,
  },
  {
    path: 'api-keys/new',
    fields: { Label: 'a', 'Tokens per minute': '1.5' },
    submit: 'Create API key',
    at: 'Tokens per minute',
    text: /^Enter a whole number\.$/,
  },
  {
    path: 'filesystems/new',
    fields: { Name: '2nd disk' },
    submit: 'Create filesystem',
    at: 'Name',
    text: /^This must be letters, digits and hyphens, the first a letter\.$/,
  },
  {
    path: `models/add-backend/model=${model}`,
    fields: { Name: 'one', 'Base URL': '10.0.0.5:8000' },
    submit: 'Check backend',
    at: 'Base URL',
    text: /^Enter an address that starts with http:/,
  },
  {
    path: 'ssh-keys/new',
    fields: { Name: 'desk', 'Public key': 'nonsense' },
    submit: 'Add SSH key',
    at: 'Public key',
    text: /\.$/,
  },
  {
    path: 'ssh-keys/new',
    choose: 'Generate a key pair',
    fields: { Name: 'laptop' },
    submit: 'Generate SSH key',
    at: 'Name',
    text: /^An SSH key is called 'laptop' already/,
  },
  {
    path: 'filesystems/new',
    fields: { Name: 'data' },
    submit: 'Create filesystem',
    at: 'Name',
    text: /^A filesystem is called 'data' already\.$/,
  },
  {
    path: 'firewall/new',
    fields: { Name: 'web', Ports: '80', Source: 'everywhere' },
    submit: 'Create ruleset',
    at: 'Source',
    text: /^This is not a valid IPv4 network\. Use one such as 203\.0\.113\.0\/24\.$/,
  },
  {
    path: 'firewall/new',
    fields: { Name: 'web', Ports: '70000' },
    submit: 'Create ruleset',
    at: 'Ports',
    text: /^This must be at most 65535\.$/,
  },
  {
    path: 'firewall/new',
    fields: { Name: 'web', Ports: 'http' },
    submit: 'Create ruleset',
    at: 'Ports',
    text: /^“http” is not a valid port\./,
  },
  {
    path: 'hosts/new',
    fields: { 'Paste the token': 'nonsense', Name: 'rack-1' },
    submit: 'Add host',
    at: 'Paste the token',
    text: /\.$/,
  },
  {
    path: 'hosts/new',
    choose: 'By address',
    fields: { Address: 'ftp://10.0.0.5', Name: 'rack-1' },
    submit: 'Add host',
    at: 'Address',
    text: /^This must be the address of a daemon such as https:/,
  },
  {
    path: `models/add-backend/model=${model}`,
    fields: { Name: 'one', 'Base URL': 'http://127.0.0.1:9/v1?key=secret' },
    submit: 'Add backend',
    at: 'Base URL',
    text: /^This must be an address that starts with http:/,
  },
  {
    path: `models/pull/model=${model}`,
    fields: { Repository: 'nonsense' },
    submit: 'Pull weights',
    at: 'Repository',
    text: /^"nonsense" names no repository\./,
  },
  {
    path: 'team',
    fields: { 'Current password': 'not the password', 'New password': 'another password' },
    submit: 'Change password',
    at: 'Current password',
    text: /^The current password is wrong\.$/,
  },
];

describeInBrowser('errors of fields', () => {
  let dashboard: Dashboard;
  let page: Page;
  before(async () => {
    dashboard = await openDashboard();
    ({ page } = dashboard);
    await post(page, `${dashboard.url}/api/v1/ssh-keys`, { name: 'laptop' });
    await post(page, `${dashboard.url}/api/v1/filesystems`, { name: 'data', region: 'us-west-1' });
  });

  /** Closes the dialog with what was entered. The next test needs no page of its own, which takes a second of CPU time. */
  async function leave(): Promise<void> {
    const dialogs = page.getByRole('dialog');
    if ((await dialogs.count()) === 0) return;
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Discard', exact: true }).click();
    await dialogs.first().waitFor({ state: 'detached' });
  }

  for (const { path, choose, fields, submit, at, text } of refused) {
    test(`/${path} refuses ${JSON.stringify(fields)} at “${at}”`, async () => {
      await page.goto(`${dashboard.url}/#/${path}`);
      if (choose !== undefined) await page.getByText(choose, { exact: true }).click();
      const button = page.getByRole('button', { name: submit, exact: true });
      const form = page.locator('form', { has: button });
      for (const [label, value] of Object.entries(fields)) {
        const field = form.getByLabel(label).and(page.locator(':not([type="radio"])'));
        await field.first().fill(value);
      }
      await button.last().click();
      await form.locator('[aria-invalid="true"]').waitFor();
      const [label, error, focused] = await page.evaluate<[string, string, boolean]>(readMarked);
      assert.ok(label.includes(at), label);
      assert.match(error, text);
      assert.ok(focused, 'the field has the focus');
      assert.equal(await page.getByRole('alert').count(), 0, 'the error is shown once');
      await leave();
    });
  }

  test('an error disappears once the field is changed, and is accessible', async () => {
    await page.goto(`${dashboard.url}/#/filesystems/new`);
    const name = page.getByRole('dialog').getByLabel('Name');
    await name.fill('data');
    await page.getByRole('dialog').getByRole('button', { name: 'Create filesystem' }).click();
    const error = page.getByText("A filesystem is called 'data' already.");
    await error.waitFor();
    await checkAppearance(page, 'field-error');
    await name.fill('data-2');
    await error.waitFor({ state: 'detached' });
  });

  test('sign-up says at its fields what is missing, malformed, too short or taken', async () => {
    const invited = await post(page, `${dashboard.url}/dashboard/api/invitations`, {
      role: 'member',
    });
    const { page: guest } = await openPage();
    await guest.goto(invited.link);
    const proceed = guest.getByRole('button', { name: 'Continue' });
    await proceed.click();
    await guest.getByText('This is required.').waitFor();
    await guest.getByLabel('Email').fill('owner');
    await proceed.click();
    await guest.getByText('Enter an email address such as ann@example.com.').waitFor();
    await guest.getByLabel('Email').fill('owner@example.com');
    await guest.getByLabel('Password', { exact: true }).pressSequentially('short');
    await proceed.click();
    await guest.getByText('Use at least 10 characters.').waitFor();
    await guest.getByLabel('Password', { exact: true }).fill(password);
    await proceed.click();
    await guest.getByText('This email address is taken.').waitFor();
    assert.equal(await guest.getByLabel('Email').getAttribute('aria-invalid'), 'true');
  });
});

/** The label of the marked field, the error that describes it, and whether it has the focus. */
const readMarked = `[document.querySelector('[aria-invalid="true"]')].map((field) => [
  field.labels[0].innerText,
  field.getAttribute('aria-describedby').split(' ').filter((id) => id.endsWith('-error'))
    .map((id) => document.getElementById(id).textContent).join(),
  field === document.activeElement,
])[0]`;
