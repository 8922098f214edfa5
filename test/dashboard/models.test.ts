// What answers for each model, and weights pulled and removed in the page, from a hub on loopback.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  findViolations,
  joinBy,
  noBrowser,
  openPage,
  picture,
  serve,
} from '#test/support/browser.ts';
import { startHub, type TestHub } from '#test/support/hub.ts';

const model = 'llama3.2-3b-instruct';
const repo = 'bartowski/Llama-3.2-3B-Instruct-GGUF';
const file = 'Llama-3.2-3B-Instruct-Q4_K_M.gguf';

describe('models', { skip: noBrowser }, () => {
  let hub: TestHub;
  let page: Page;
  let complaints: string[];
  before(async () => {
    hub = await startHub();
    hub.add(repo, { [file]: randomBytes(400_000) });
    const { setupLink } = await serve(['--hub-url', hub.url]);
    ({ page, complaints } = await openPage({ reducedMotion: 'reduce' }));
    await joinBy(page, setupLink, 'owner@example.com');
    await page.getByRole('link', { name: 'Models', exact: true }).click();
  });

  const row = () => page.getByRole('row', { name: new RegExp(`^${model}`) });
  const bar = () => page.getByRole('progressbar', { name: `Download of ${file}` });

  async function openDialog() {
    await page.getByRole('button', { name: `Add to ${model}` }).click();
    await page.getByRole('menuitem', { name: 'Pull weights' }).click();
  }

  async function pull() {
    await openDialog();
    await page.getByRole('dialog').getByRole('button', { name: 'Pull' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }

  test('a model without weights says that the stand-in answers', async () => {
    await row().getByText('built-in stand-in').waitFor();
  });

  test('a download shows how far it is, and can be cancelled', async () => {
    hub.pauseAfter(100_000);
    await pull();
    await page.getByText('97.7 KiB of 391 KiB (25%)').waitFor();
    assert.equal(await bar().getAttribute('aria-valuenow'), '25');
    await picture(page, 'models-pulling');
    assert.deepEqual(await findViolations(page), []);
    await page.getByRole('button', { name: `Cancel the download of ${file}` }).click();
    await bar().waitFor({ state: 'detached' });
    hub.release();
  });

  test('weights that arrived answer for their model, until they are removed', async () => {
    await pull();
    await row().getByText(file).waitFor();
    const stored = page.getByRole('table', { name: 'Weights on disk' });
    assert.match(await stored.getByRole('row', { name: /Q4_K_M/ }).innerText(), /391 KiB/);
    await picture(page, 'models-pulled');
    assert.deepEqual(await findViolations(page), []);
    await page.getByRole('button', { name: `Remove ${file}` }).click();
    await page.getByText(`stand-in answers for ${model} from then on`).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await row().getByText('built-in stand-in').waitFor();
  });

  test('a repository that does not exist is refused in plain words', async () => {
    await openDialog();
    await page.getByLabel('Repository').fill('nobody/nothing');
    await page.getByRole('dialog').getByRole('button', { name: 'Pull' }).click();
    const notice = await page.getByRole('dialog').getByRole('alert').innerText();
    assert.match(notice, /nobody\/nothing/);
    assert.match(notice, /Request id [0-9a-f]{32}/);
    assert.deepEqual(complaints, []);
  });
});
