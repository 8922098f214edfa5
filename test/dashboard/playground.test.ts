// Chatting with the built-in model in the playground.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { describeInBrowser, findViolations, screenshot } from '#test/support/browser.ts';
import { type Dashboard, openDashboard, post, signOut } from '#test/support/dashboard.ts';
import { until } from '#test/support/until.ts';
import { toSpeed } from '../../web/src/playground/stream-chat.ts';

describeInBrowser('the playground', () => {
  let dashboard: Dashboard;
  let page: Page;
  before(async () => {
    dashboard = await openDashboard({}, {});
    ({ page } = dashboard);
    await page.getByRole('link', { name: 'Chat with a model' }).click();
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByLabel('Max tokens').fill('24');
  });

  const say = async (text: string) => {
    await page.getByLabel('Message', { exact: true }).fill(text);
    await page.keyboard.press('Enter');
  };
  const responses = () => page.getByText(/tokens in · \d+ out/);
  const viewCode = async () => {
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: 'View code' }).click();
  };
  /** The request in the code that the page shows. */
  const readCode = async () => {
    await viewCode();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('tab', { name: 'TypeScript' }).click();
    const code = await dialog.getByRole('tabpanel').innerText();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    return JSON.parse(/create\((\{[\s\S]*?\n\})\);/.exec(code)?.[1] ?? '');
  };

  test('in an empty conversation the code asks a question that the server answers', async () => {
    const shown = await readCode();
    assert.deepEqual(shown.messages, [{ role: 'user', content: 'What is a millrace?' }]);
    const path = `${dashboard.url}/v1/chat/completions`;
    const response = await page.context().request.post(path, { data: shown });
    assert.equal(response.status(), 200);
  });

  test('a response is streamed, with statistics and a note on the stand-in', async () => {
    await say('What is a millrace?');
    await responses().waitFor();
    const numbers = await responses().innerText();
    assert.match(
      numbers,
      /^\d+ tokens in · \d+ out · [\d.]+ tokens\/s · first token after [\d.]+ s/,
    );
    await page.getByText('the stand-in answered instead').waitFor();
    assert.deepEqual(await findViolations(page), []);
  });

  test('the conversation survives a reload, on the server only', async () => {
    await page.reload();
    await page.getByText('What is a millrace?').first().waitFor();
    await responses().waitFor();
    await page.getByRole('button', { name: 'Settings' }).click();
    const stored = String(await page.evaluate('JSON.stringify(localStorage)'));
    assert.doesNotMatch(stored, /What is a millrace/);
  });

  test('a response can be regenerated', async () => {
    const sent = page.waitForRequest('**/v1/chat/completions');
    await page.getByRole('button', { name: 'Regenerate response' }).click();
    const { messages, max_tokens } = (await sent).postDataJSON();
    assert.deepEqual(messages, [{ role: 'user', content: 'What is a millrace?' }]);
    assert.equal(max_tokens, 24);
    // The old response is shown until the new one begins.
    await until('there is one response', async () => (await responses().count()) === 1);
  });

  test('editing a message drops everything after it and gets a new response', async () => {
    await page.getByLabel('System prompt').fill('Answer briefly.');
    await page.getByRole('button', { name: 'Edit message' }).click();
    await page.getByLabel('Edited message').fill('What is a mill?');
    const sent = page.waitForRequest('**/v1/chat/completions');
    await page.getByRole('button', { name: 'Save and resend' }).click();
    assert.deepEqual((await sent).postDataJSON().messages, [
      { role: 'system', content: 'Answer briefly.' },
      { role: 'user', content: 'What is a mill?' },
    ]);
    await responses().waitFor();
    const before = page.locator('.turns').getByText('What is a millrace?').first();
    await before.waitFor({ state: 'detached' });
  });

  test('stopping keeps the text so far', async () => {
    await page.getByLabel('Max tokens').fill('4000');
    // Otherwise the small model would often finish before the test can stop it.
    await page.route('**/v1/chat/completions', (route) =>
      route.continue({ postData: { ...route.request().postDataJSON(), ignore_eos: true } }),
    );
    await say('Tell me a very long story.');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('stopped by you').waitFor();
    await page.unroute('**/v1/chat/completions');
    await page.getByRole('button', { name: 'Send' }).waitFor();
  });

  test('the code sends the same request', async () => {
    await viewCode();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('tab', { name: 'Python' }).click();
    const code = await dialog.getByRole('tabpanel').innerText();
    assert.match(code, /Answer briefly\./);
    assert.match(code, /max_tokens=4000/);
    assert.ok(code.includes(`base_url="${dashboard.url}/v1"`));
    await page.keyboard.press('Escape');
    const { messages } = await readCode();
    assert.deepEqual(messages.at(-1), { role: 'user', content: 'Tell me a very long story.' });
    assert.equal(messages.at(-2).role, 'assistant');
  });

  test('a response follows the schema, and each token shows its probability', async () => {
    await page.getByRole('button', { name: 'New chat' }).click();
    await page.getByLabel('Max tokens').fill('60');
    await page.getByRole('button', { name: 'Example schema' }).click();
    await page.getByLabel('Show token probabilities').check();
    const sent = page.waitForRequest('**/v1/chat/completions');
    await say('Is water wet?');
    const { response_format, logprobs } = (await sent).postDataJSON();
    assert.deepEqual(response_format.json_schema.schema.required, ['answer', 'certain']);
    assert.equal(logprobs, true);
    await responses().waitFor();
    assert.match(await page.locator('.turn-text').last().innerText(), /^\s*\{\s*"answer"\s*:/);
    const probabilities = page.getByRole('tooltip').filter({ hasText: '%' });
    await page.locator('.token').nth(3).hover();
    assert.match(await probabilities.innerText(), /\d+\.\d%/);
    await screenshot(page, 'playground-logprobs');
    assert.deepEqual(await findViolations(page), []);
    await page.getByLabel('Message', { exact: true }).hover();
    await probabilities.waitFor({ state: 'detached' });
    await page.getByRole('group', { name: /token probabilities/ }).focus();
    await page.keyboard.press('ArrowRight');
    await probabilities.waitFor();
    await page.keyboard.press('Escape');
    await probabilities.waitFor({ state: 'detached' });
    await page.getByLabel('Response schema').fill('');
    await page.getByLabel('Show token probabilities').uncheck();
  });

  test('the user enters the result of a tool call', async () => {
    await page.getByRole('button', { name: 'New chat' }).click();
    await page.getByRole('button', { name: 'Example tool' }).click();
    // Otherwise the small model would often not call the tool.
    await page.route('**/v1/chat/completions', (route) =>
      route.continue({ postData: { ...route.request().postDataJSON(), tool_choice: 'required' } }),
    );
    await say('How is the weather in Oslo?');
    await page.getByLabel('Result of get_weather').fill('{"sky":"clear"}');
    await page.unroute('**/v1/chat/completions');
    await screenshot(page, 'playground-tools');
    assert.deepEqual(await findViolations(page), []);
    const sent = page.waitForRequest('**/v1/chat/completions');
    await page.getByRole('button', { name: 'Send results' }).click();
    const [user, assistant, tool] = (await sent).postDataJSON().messages.slice(-3);
    assert.equal(user.content, 'How is the weather in Oslo?');
    assert.equal(assistant.tool_calls[0].function.name, 'get_weather');
    assert.deepEqual(tool, {
      role: 'tool',
      content: '{"sky":"clear"}',
      tool_call_id: assistant.tool_calls[0].id,
    });
    await responses().nth(1).waitFor();
  });

  test('a number that the API would reject is neither changed nor sent', async () => {
    const temperature = page.getByLabel('Temperature');
    await temperature.fill('9');
    await temperature.blur();
    assert.equal(await temperature.inputValue(), '9');
    await page.getByText('Temperature must be between 0 and 2, got 9.').first().waitFor();
    assert.ok(await page.getByRole('button', { name: 'Send' }).isDisabled());
    await temperature.fill('');
    await page.getByText('Temperature must be').first().waitFor({ state: 'detached' });
  });

  test('a model that only a stand-in answers for is marked, with a way to serve it', async () => {
    await page.getByRole('combobox', { name: 'Model' }).click();
    const option = page.getByRole('option', { name: /lfm-40b/ });
    assert.match(await option.innerText(), /stand-in, not the real model/);
    await page.keyboard.press('Escape');
    await page.getByRole('link', { name: 'Serve the real model' }).click();
    await page.getByRole('dialog', { name: /Pull/ }).waitFor();
    await page.goBack();
  });

  test('a link selects the model', async () => {
    for (const [link, model] of [
      ['#/playground?model=llama3.2-3b-instruct', 'llama3.2-3b-instruct'],
      ['#/playground/model=hermes3-8b', 'hermes3-8b'],
    ]) {
      await page.goto(`${dashboard.url}/${link}`);
      await page.locator(`input[value="${model}"]`).first().waitFor();
    }
    await page.goto(`${dashboard.url}/#/playground?model=nope`);
    await page.getByText('“nope”, which this server does not have').waitFor();
    await page.goto(`${dashboard.url}/#/playground?model=llama3.1-8b-instruct`);
    await page.locator('input[value="llama3.1-8b-instruct"]').first().waitFor();
    await page.goto(`${dashboard.url}/#/playground`);
  });

  test('on a phone the toolbar has two rows, and its buttons keep their names', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    const middle = async (role: 'heading' | 'button', name: string) => {
      const box = await page.getByRole(role, { name, exact: true }).first().boundingBox();
      return (box?.y ?? 0) + (box?.height ?? 0) / 2;
    };
    // The page is laid out anew some time after its size has changed.
    await until('the buttons are in the row of the title, and the models below', async () => {
      const title = await middle('heading', 'Playground');
      const buttons = await Promise.all(
        ['Conversations', 'Settings', 'More actions'].map((name) => middle('button', name)),
      );
      const models = await middle('button', 'Compare with another model');
      const areInRow = buttons.every((button) => Math.abs(button - title) < 4);
      return areInRow && models > title && models - title < 60;
    });
    await page.setViewportSize({ width: 1280, height: 720 });
  });

  test('a short answer that arrives at once has a possible speed', () => {
    assert.equal(toSpeed(36, 400, 3), 90);
    assert.equal(toSpeed(101, 5_500, 5_000), 20);
    assert.equal(toSpeed(1, 400, 0), null);
  });

  test('tools that are not JSON are not sent', async () => {
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByLabel('Tools').fill('[{');
    await page.getByText('Tools must be a JSON array.').waitFor();
    await page.getByLabel('Message', { exact: true }).fill('Hello?');
    assert.ok(await page.getByRole('button', { name: 'Send' }).isDisabled());
    await page.getByLabel('Tools').fill('');
    await page.getByRole('button', { name: 'Send' }).waitFor();
  });

  test('an error is shown with the server’s message and the request ID', async () => {
    const turns = [{ id: '1', role: 'user', text: 'Hi' }];
    const settings = { system: '', settings: {}, tools: '', schema: '', logprobs: false };
    const content = { ...settings, models: ['no-such-model'], turns };
    const path = `${dashboard.url}/dashboard/api/playground/conversations`;
    const { id } = await post(page, path, { name: 'Broken', content });
    await page.goto(`${dashboard.url}/#/playground/${id}`);
    await say('Hello?');
    const notice = page.getByRole('alert');
    await notice.waitFor();
    assert.match(await notice.innerText(), /"no-such-model" does not exist here/);
    assert.match(await notice.innerText(), /Request ID [0-9a-f]{32}/);
  });

  test('a long name is cut off, and leaves room for the menu of the conversation', async () => {
    const name = 'A very long name that does not fit into the list of conversations';
    const content = { system: '', settings: {}, tools: '', schema: '', logprobs: false };
    const path = `${dashboard.url}/dashboard/api/playground/conversations`;
    const models = ['llama3.1-8b-instruct'];
    const { id } = await post(page, path, { name, content: { ...content, models, turns: [] } });
    await page.goto(`${dashboard.url}/#/playground/${id}`);
    await page.reload();
    const menu = await page.getByRole('button', { name: `Actions of ${name}` }).boundingBox();
    const list = await page.getByRole('complementary', { name: 'Conversations' }).boundingBox();
    assert.ok(menu && list && menu.x + menu.width <= list.x + list.width);
  });

  test('nothing of a conversation is left in the browser', async () => {
    await signOut(page);
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    const stored = String(await page.evaluate('JSON.stringify(localStorage)'));
    assert.doesNotMatch(stored, /Hello|weather|conversation/);
    assert.deepEqual(dashboard.consoleErrors, []);
  });
});
