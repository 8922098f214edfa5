// Talking to the built-in model through the page.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import {
  findViolations,
  joinBy,
  noBrowser,
  openPage,
  picture,
  type Served,
  serve,
  type Watched,
} from '#test/support/browser.ts';

describe('the playground', { skip: noBrowser }, () => {
  let served: Served;
  let watched: Watched;
  let page: Page;
  before(async () => {
    served = await serve();
    watched = await openPage();
    page = watched.page;
    await joinBy(page, served.setupLink, 'owner@example.com');
    await page.getByRole('link', { name: 'Chat now' }).click();
    await page.getByLabel('Max tokens').fill('24');
  });

  const say = async (text: string) => {
    await page.getByLabel('Message', { exact: true }).fill(text);
    await page.keyboard.press('Enter');
  };
  const answers = () => page.getByText(/tokens in · \d+ out/);
  /** What the code shown would send. */
  const readCode = async () => {
    await page.getByRole('button', { name: 'UrlState code' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('tab', { name: 'TypeScript' }).click();
    const code = await dialog.getByRole('tabpanel').innerText();
    await page.keyboard.press('Escape');
    await dialog.waitFor({ state: 'detached' });
    return JSON.parse(/create\((\{[\s\S]*?\n\})\);/.exec(code)?.[1] ?? '');
  };

  test('before anything was said the code asks a question that is answered', async () => {
    const shown = await readCode();
    assert.deepEqual(shown.messages, [{ role: 'user', content: 'What is a millrace?' }]);
    const path = `${served.url}/v1/chat/completions`;
    const response = await page.context().request.post(path, { data: shown });
    assert.equal(response.status(), 200);
  });

  test('an answer is streamed, with its numbers, and says that the stand-in gave it', async () => {
    await say('What is a millrace?');
    await answers().waitFor();
    const numbers = await answers().innerText();
    assert.match(
      numbers,
      /^\d+ tokens in · \d+ out · [\d.]+ tokens\/s · first token after [\d.]+ s/,
    );
    await page.getByText('the small built-in model answered in its place').waitFor();
    assert.deepEqual(await findViolations(page), []);
  });

  test('the conversation survives a reload, in this browser only', async () => {
    await page.reload();
    await page.getByText('What is a millrace?').waitFor();
    await answers().waitFor();
    const stored = await page.evaluate('Object.keys(localStorage).join()');
    assert.match(String(stored), /millrace\.conversation\.[0-9a-f]{32}/);
  });

  test('an answer can be asked for again in its place', async () => {
    const sent = page.waitForRequest('**/v1/chat/completions');
    await page.getByRole('button', { name: 'Answer again' }).click();
    const { messages, max_tokens } = (await sent).postDataJSON();
    assert.deepEqual(messages, [{ role: 'user', content: 'What is a millrace?' }]);
    assert.equal(max_tokens, 24);
    await answers().waitFor();
    assert.equal(await answers().count(), 1);
  });

  test('an edited message drops what followed it and is answered anew', async () => {
    await page.getByLabel('System prompt').fill('Answer briefly.');
    await page.getByRole('button', { name: 'Edit the message' }).click();
    await page.getByLabel('Edited message').fill('What is a mill?');
    const sent = page.waitForRequest('**/v1/chat/completions');
    await page.getByRole('button', { name: 'Send again' }).click();
    assert.deepEqual((await sent).postDataJSON().messages, [
      { role: 'system', content: 'Answer briefly.' },
      { role: 'user', content: 'What is a mill?' },
    ]);
    await answers().waitFor();
    assert.equal(await page.getByText('What is a millrace?').count(), 0);
  });

  test('stopping keeps what was said so far', async () => {
    await page.getByLabel('Max tokens').fill('4000');
    // The small model would often be done before anybody could stop it.
    await page.route('**/v1/chat/completions', (route) =>
      route.continue({ postData: { ...route.request().postDataJSON(), ignore_eos: true } }),
    );
    await say('Tell me a very long story.');
    await page.getByRole('button', { name: 'Stop' }).click();
    await page.getByText('stopped by you').waitFor();
    await page.unroute('**/v1/chat/completions');
    await page.getByRole('button', { name: 'Send' }).waitFor();
  });

  test('the code shown asks for the same', async () => {
    await page.getByRole('button', { name: 'UrlState code' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('tab', { name: 'Python' }).click();
    const code = await dialog.getByRole('tabpanel').innerText();
    assert.match(code, /Answer briefly\./);
    assert.match(code, /max_tokens=4000/);
    assert.ok(code.includes(`base_url="${served.url}/v1"`));
    await page.keyboard.press('Escape');
    const { messages } = await readCode();
    assert.deepEqual(messages.at(-1), { role: 'user', content: 'Tell me a very long story.' });
    assert.equal(messages.at(-2).role, 'assistant');
  });

  test('an answer is held to a schema, and each token says how likely it was', async () => {
    await page.getByRole('button', { name: 'Start over' }).click();
    await page.getByLabel('Max tokens').fill('60');
    await page.getByRole('button', { name: 'Example schema' }).click();
    await page.getByLabel('Show how likely each token was').check();
    const sent = page.waitForRequest('**/v1/chat/completions');
    await say('Is water wet?');
    const { response_format, logprobs } = (await sent).postDataJSON();
    assert.deepEqual(response_format.json_schema.schema.required, ['answer', 'certain']);
    assert.equal(logprobs, true);
    await answers().waitFor();
    assert.match(await page.locator('.turn-text').last().innerText(), /^\s*\{\s*"answer"\s*:/);
    const chances = page.getByRole('tooltip').filter({ hasText: '%' });
    await page.locator('.token').nth(3).hover();
    assert.match(await chances.innerText(), /\d+\.\d%/);
    await picture(page, 'playground-logprobs');
    assert.deepEqual(await findViolations(page), []);
    await page.getByLabel('Message', { exact: true }).hover();
    await chances.waitFor({ state: 'detached' });
    await page.getByRole('group', { name: /how likely each token was/ }).focus();
    await page.keyboard.press('ArrowRight');
    await chances.waitFor();
    await page.keyboard.press('Escape');
    await chances.waitFor({ state: 'detached' });
    await page.getByLabel('Schema of the answer').fill('');
    await page.getByLabel('Show how likely each token was').uncheck();
  });

  test('a tool that the model called is answered by the person', async () => {
    await page.getByRole('button', { name: 'Start over' }).click();
    await page.getByRole('button', { name: 'Example tool' }).click();
    // The small model would often rather talk.
    await page.route('**/v1/chat/completions', (route) =>
      route.continue({ postData: { ...route.request().postDataJSON(), tool_choice: 'required' } }),
    );
    await say('How is the weather in Oslo?');
    await page.getByLabel('Result of get_weather').fill('{"sky":"clear"}');
    await page.unroute('**/v1/chat/completions');
    await picture(page, 'playground-tools');
    assert.deepEqual(await findViolations(page), []);
    const sent = page.waitForRequest('**/v1/chat/completions');
    await page.getByRole('button', { name: 'Send the results' }).click();
    const [user, assistant, tool] = (await sent).postDataJSON().messages.slice(-3);
    assert.equal(user.content, 'How is the weather in Oslo?');
    assert.equal(assistant.tool_calls[0].function.name, 'get_weather');
    assert.deepEqual(tool, {
      role: 'tool',
      content: '{"sky":"clear"}',
      tool_call_id: assistant.tool_calls[0].id,
    });
    await answers().nth(1).waitFor();
  });

  test('tools that are not JSON are not sent', async () => {
    await page.getByLabel('Tools').fill('[{');
    await page.getByText('The tools are not a JSON array yet').waitFor();
    await page.getByLabel('Message', { exact: true }).fill('Hello?');
    assert.ok(await page.getByRole('button', { name: 'Send' }).isDisabled());
    await page.getByLabel('Tools').fill('');
    await page.getByRole('button', { name: 'Send' }).waitFor();
  });

  test('a refusal is shown in the server’s words with the request id', async () => {
    await page.getByRole('button', { name: 'Start over' }).click();
    await page.evaluate(`for (const key of Object.keys(localStorage)) {
      if (!key.startsWith('millrace.conversation.')) continue;
      const stored = JSON.parse(localStorage[key]);
      localStorage[key] = JSON.stringify({ ...stored, model: 'no-such-model' });
    }`);
    await page.reload();
    await say('Hello?');
    const notice = page.getByRole('alert');
    await notice.waitFor();
    assert.match(await notice.innerText(), /"no-such-model" does not exist here/);
    assert.match(await notice.innerText(), /Request id [0-9a-f]{32}/);
  });

  test('signing out takes the conversation with it', async () => {
    await page.getByRole('button', { name: 'You' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in' }).waitFor();
    const stored = await page.evaluate('Object.keys(localStorage).join()');
    assert.doesNotMatch(String(stored), /conversation/);
    assert.deepEqual(watched.complaints, []);
  });
});
