// How the playground shows what models say: markdown, safely, and reasoning; images, two models side by side, saved
// and shared conversations.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  checkAppearance,
  describeInBrowser,
  findViolations,
  settle,
} from '#test/support/browser.ts';
import { type Dashboard, openAs, openDashboard } from '#test/support/dashboard.ts';
import { type SayingUpstream, startSayingUpstream } from '#test/support/saying-upstream.ts';
import type { TestOptions } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

const rich = `# Sorting

A **stable** sort keeps equal items in order. It takes $O(n \\log n)$ steps, and costs $5 or $10.

\`\`\`python
def merge(a: list[int], b: list[int]) -> list[int]:
    # Both are sorted.
    return sorted(a + b)
\`\`\`

| sort | stable |
|---|---|
| merge | yes |
| heap | no |

\\[
\\sum_{i=1}^{n} i = \\frac{n(n+1)}{2}
\\]

1. First

2. Second with \`code\`

See [the docs][docs].

[docs]: https://example.com/sort
`;

const hostile = `<script>window.hacked = 1</script>
<img src=x onerror="window.hacked = 2">
<iframe src="javascript:window.hacked = 3"></iframe>

[one](javascript:window.hacked=4) [two](data:text/html,<script>alert(1)</script>) [three](#/team)
[four](java&#115;cript:alert(1)) [five](//evil.example/x) [good](https://example.com/)

![tracker](https://evil.example/pixel.png) ![svg](data:image/svg+xml;base64,PHN2Zz48L3N2Zz4=)
![file](/dashboard/api/me)

$\\href{javascript:alert(1)}{x}$ $\\htmlStyle{color:red}{y}$ $\\includegraphics{https://evil.example/a.png}$

<style>body { display: none }</style>
`;

describeInBrowser('answers in the playground', () => {
  let upstream: SayingUpstream;
  let dashboard: Dashboard;
  let page: Page;
  before(async () => {
    upstream = await startSayingUpstream();
    const backends = [{ name: 'said', url: upstream.url }];
    const catalog: NonNullable<NonNullable<TestOptions['config']>['models']>['catalog'] = {
      talker: { price: { input: 1, output: 2 }, backends },
      seer: { price: { input: 10, output: 20 }, input: ['text', 'image'], backends },
    };
    dashboard = await openDashboard({ config: { models: { builtin_ids: false, catalog } } });
    ({ page } = dashboard);
    await page.goto(`${dashboard.url}/#/playground?model=talker`);
    await page.locator('input[value="talker"]').first().waitFor();
  });

  const say = async (text: string, on = page) => {
    await on.getByLabel('Message', { exact: true }).fill(text);
    await on.keyboard.press('Enter');
  };
  const responses = (on = page) => on.getByText(/tokens in · \d+ out/);
  const startNew = () => page.getByRole('button', { name: 'New chat' }).first().click();
  const saved = () => page.waitForURL(/#\/playground\/[0-9a-f]{32}$/);

  test('markdown is rendered with highlighted code, tables and maths, within the policy', async () => {
    upstream.say(...(rich.match(/[\s\S]{1,9}/g) ?? []));
    await say('How do I sort?');
    await responses().waitFor();
    await page.locator('.markdown .hljs-keyword').first().waitFor();
    assert.equal(page.workers().length, 1, 'code is highlighted in a thread of its own');
    await page.locator('.markdown math[display="block"] mfrac').waitFor();
    assert.equal(await page.locator('.markdown math').count(), 2, 'money is not maths');
    await page.getByText('costs $5 or $10').waitFor();
    assert.equal(await page.locator('.markdown td').count(), 4);
    assert.equal(await page.locator('.markdown ol').count(), 1);
    const link = page.getByRole('link', { name: 'the docs' });
    assert.equal(await link.getAttribute('href'), 'https://example.com/sort');
    assert.match((await link.getAttribute('rel')) ?? '', /noopener noreferrer/);
    await page.getByRole('button', { name: 'Copy code' }).waitFor();
    await checkAppearance(page, 'playground-markdown');
    assert.deepEqual(dashboard.consoleErrors, []);
  });

  test('a long list and a long table look like one each', async () => {
    await startNew();
    const items = Array.from({ length: 45 }, (_, index) => `${index + 1}. Item ${index + 1}`);
    const rows = Array.from({ length: 45 }, (_, index) => `| row ${index} | **x** |`);
    upstream.say(`${items.join('\n')}\n\n| n | of |\n|---|---|\n${rows.join('\n')}\n`);
    await say('List them.');
    await responses().waitFor();
    const starts = page.locator('.markdown > ol');
    await page.locator('.markdown tbody > tr').nth(44).waitFor();
    const numbers = `[...document.querySelectorAll('.markdown > ol')].map(({ start }) => start)`;
    assert.deepEqual(await page.evaluate(numbers), [1, 21, 41]);
    const [one, two] = [await starts.nth(0).boundingBox(), await starts.nth(1).boundingBox()];
    assert.equal(Math.round((one?.y ?? 0) + (one?.height ?? 0)), Math.round(two?.y ?? 0));
    assert.equal(await page.locator('.markdown table').count(), 1);
    assert.equal(await page.locator('.markdown thead').count(), 1);
    assert.equal(await page.locator('.markdown tbody > tr').count(), 45);
  });

  test('an answer can’t run scripts, style the page, call out or link anywhere but to the web', async () => {
    await startNew();
    upstream.say(hostile);
    await say('Attack me.');
    await responses().waitFor();
    await page.locator('.markdown math').first().waitFor();
    assert.equal(await page.evaluate('window.hacked'), undefined);
    const bad = 'script, iframe, style, object, embed, svg, [onerror], [href^="java" i]';
    assert.equal(await page.locator('.markdown').locator(bad).count(), 0);
    const links = page.locator('.markdown a');
    assert.deepEqual(await links.allInnerTexts(), ['good']);
    assert.equal(await page.locator('.markdown img').count(), 0);
    await page.getByText('Image not loaded: tracker').waitFor();
    await page.getByText('<script>window.hacked = 1</script>').waitFor();
    assert.deepEqual([...dashboard.hosts], [new URL(dashboard.url).host]);
    assert.deepEqual(dashboard.consoleErrors, []);
  });

  test('reasoning is collapsed, and not sent back', async () => {
    for (const pieces of [
      [{ reasoning_content: 'Two and two' }, { reasoning_content: ' make four.' }, 'Four.'],
      ['<thi', 'nk>Two and two', ' make four.</th', 'ink>\n\n', 'Four.'],
    ]) {
      await startNew();
      upstream.say(...pieces);
      await say('2 + 2?');
      const summary = page.getByText(/^Thought for [\d.]+ s$/);
      await summary.waitFor();
      await responses().waitFor();
      assert.equal(await page.getByText('make four').count(), 0);
      assert.equal(await page.locator('.turn > .markdown').innerText(), 'Four.');
      await summary.click();
      await page.getByText('Two and two make four.').waitFor();
      await say('And 3 + 3?');
      await responses().nth(1).waitFor();
      assert.deepEqual(upstream.requests.at(-1)?.messages, [
        { role: 'user', content: '2 + 2?' },
        { role: 'assistant', content: 'Four.' },
        { role: 'user', content: 'And 3 + 3?' },
      ]);
    }
  });

  test('two models answer side by side, each with its price', async () => {
    await startNew();
    upstream.say('It ', 'turns.');
    await page.getByRole('button', { name: 'Compare with another model' }).click();
    await page.getByLabel('Second model').and(page.locator('input[value="seer"]')).waitFor();
    await say('What does a wheel do?');
    await responses().nth(1).waitFor();
    const lanes = page.locator('.lanes > section');
    assert.match(await lanes.nth(0).innerText(), /^talker[\s\S]*\$0\.000014/);
    assert.match(await lanes.nth(1).innerText(), /^seer[\s\S]*\$0\.00014/);
    await checkAppearance(page, 'playground-compare');
    await lanes.nth(1).getByRole('button', { name: 'Continue with this one' }).click();
    await page.locator('.lanes').waitFor({ state: 'detached' });
    await page.locator('input[value="seer"]').first().waitFor();
    await say('And then?');
    await responses().nth(1).waitFor();
    assert.equal(upstream.requests.at(-1)?.messages.length, 3);
  });

  test('images are attached only for a model that takes them, as data URLs', async () => {
    await startNew();
    const [chooser] = await Promise.all([
      page.waitForEvent('filechooser'),
      page.getByRole('button', { name: 'Attach images' }).click(),
    ]);
    const pixel =
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const file = (name: string, mimeType: string, text: string) =>
      chooser.setFiles({ name, mimeType, buffer: Buffer.from(text, 'base64') });
    await file('evil.svg', 'image/svg+xml', 'PHN2Zz48L3N2Zz4=');
    await page.getByText('evil.svg is not a PNG, JPEG, WebP or GIF image.').waitFor();
    await file('dot.png', 'image/png', pixel);
    await page.getByAltText('Attached 1').waitFor();
    upstream.say('A red dot.');
    await say('What is this?');
    await responses().waitFor();
    const parts = upstream.requests.at(-1)?.messages[0]?.content;
    const [text, image] = (parts ?? []) as { type: string; image_url: { url: string } }[];
    assert.deepEqual(text, { type: 'text', text: 'What is this?' });
    assert.match(image?.image_url.url ?? '', /^data:image\/jpeg;base64,/);
    await saved();
    await page.reload();
    await page.getByAltText('Attached 1').waitFor();
    await page.goto(`${dashboard.url}/#/playground?model=talker`);
    await page.locator('input[value="talker"]').first().waitFor();
    assert.equal(await page.getByRole('button', { name: 'Attach images' }).count(), 0);
  });

  test('conversations are named, found by their text, renamed and deleted', async () => {
    upstream.say('The *quokka* smiles.');
    await say('Which animal looks happy?');
    await saved();
    const list = page.getByRole('complementary', { name: 'Conversations' });
    await list.getByRole('link', { name: /Which animal looks happy/ }).waitFor();
    await list.getByLabel('Search conversations').fill('QUOKKA');
    await until('only the match is listed', async () => {
      const [match, ...others] = await list.getByRole('link').allInnerTexts();
      return match?.startsWith('Which animal') && others.length === 0;
    });
    await list.getByRole('button', { name: /Actions of Which animal/ }).click();
    await page.getByRole('menuitem', { name: 'Rename' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('Animals');
    assert.deepEqual(await findViolations(page), []);
    await page.getByRole('button', { name: 'Rename' }).click();
    await list.getByRole('link', { name: /^Animals/ }).waitFor();
    await list.getByLabel('Search conversations').fill('');
    await list.getByRole('link', { name: /How do I sort/ }).click();
    await page.locator('.markdown .hljs-keyword').first().waitFor();
    await page.goBack();
    await page.locator('.markdown em', { hasText: 'quokka' }).waitFor();
    await list.getByRole('button', { name: /Actions of Animals/ }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByRole('button', { name: 'Delete' }).click();
    await list.getByRole('link', { name: /^Animals/ }).waitFor({ state: 'detached' });
    assert.match(page.url(), /#\/playground$/);
  });

  test('a shared conversation is read and copied by another member, until sharing ends', async () => {
    await page.getByRole('link', { name: /How do I sort/ }).click();
    await page.locator('.markdown .hljs-keyword').first().waitFor();
    await page.getByRole('button', { name: 'Share', exact: true }).click();
    await page.getByRole('button', { name: 'Share with the team' }).click();
    const link = await page.getByLabel('Link', { exact: true }).innerText();
    await page.mouse.move(0, 0);
    await settle(page);
    assert.deepEqual(await findViolations(page), []);
    const member = await openAs(dashboard, 'member');
    await member.goto(link);
    await member.getByText('Shared by owner@example.com').waitFor();
    await member.locator('.markdown .hljs-keyword').first().waitFor();
    assert.equal(await member.getByLabel('Message', { exact: true }).count(), 0);
    assert.deepEqual(await findViolations(member), []);
    const viewer = await openAs(dashboard, 'viewer');
    await viewer.goto(link);
    await viewer.getByText('Shared by owner@example.com').waitFor();
    assert.equal(await viewer.getByRole('button', { name: /my own copy/ }).count(), 0);
    await member.getByRole('button', { name: 'Continue as my own copy' }).click();
    upstream.say('Sure.');
    await say('Thanks.', member);
    await responses(member).nth(1).waitFor();
    assert.equal(upstream.requests.at(-1)?.messages.length, 3);
    assert.notEqual(member.url(), link);
    await page.getByRole('button', { name: 'Stop sharing' }).click();
    await page.getByRole('button', { name: 'Share with the team' }).waitFor();
    await page.keyboard.press('Escape');
    await viewer.reload();
    await viewer.getByText('does not exist, or is no longer shared').waitFor();
  });

  test('a temporary chat is saved nowhere', async () => {
    await startNew();
    await page.getByLabel('Temporary').check();
    await say('A secret.');
    await responses().waitFor();
    assert.match(page.url(), /#\/playground$/);
    const { request } = page.context();
    const found = await request.get(
      `${dashboard.url}/dashboard/api/playground/conversations?search=secret`,
    );
    assert.deepEqual((await found.json()).data, []);
    const stored = String(await page.evaluate('JSON.stringify(localStorage)'));
    assert.doesNotMatch(stored, /secret|sort/);
    await startNew();
    await page.getByLabel('Temporary').uncheck();
  });

  test('a preset restores the settings', async () => {
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByLabel('System prompt').fill('Be brief.');
    await page.getByLabel('Temperature').fill('0.3');
    await page.getByRole('button', { name: 'Save as preset' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('Brief');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Reset', exact: true }).click();
    assert.equal(await page.getByLabel('System prompt').inputValue(), '');
    await page.getByRole('button', { name: 'Presets' }).click();
    await page.getByRole('menuitem', { name: 'Brief', exact: true }).click();
    assert.equal(await page.getByLabel('System prompt').inputValue(), 'Be brief.');
    assert.equal(await page.getByLabel('Temperature').inputValue(), '0.3');
    await page.getByRole('button', { name: 'Settings' }).click();
  });

  test('the up arrow edits the last question, and the conversation is exported', async () => {
    upstream.say('Yes.');
    await say('Is it wet?');
    await responses().waitFor();
    await page.getByLabel('Message', { exact: true }).focus();
    await page.keyboard.press('ArrowUp');
    await page.getByLabel('Edited message').fill('Is water wet?');
    await page.getByRole('button', { name: 'Save and resend' }).click();
    await responses().waitFor();
    await page.getByRole('button', { name: 'More actions' }).click();
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('menuitem', { name: 'Export as markdown' }).click(),
    ]);
    assert.equal(file.suggestedFilename(), 'Is-it-wet.md');
    const stream = await file.createReadStream();
    const text = Buffer.concat(await Array.fromAsync(stream as AsyncIterable<Buffer>)).toString();
    assert.equal(
      text,
      '# Is it wet?\n\n## System prompt\n\nBe brief.\n\n## You\n\nIs water wet?\n\n## talker\n\nYes.\n',
    );
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});
