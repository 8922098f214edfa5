// An error names the member that the client sent, not that of the chat which the request became.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const model = 'hermes3-8b';
const png = 'data:image/png;base64,iVBORw0KGgo=';
const address = 'https://example.com/a.png';
const say = (...content: object[]) => ({ role: 'user', content });
const text = (said: string) => ({ type: 'input_text', text: said });
const image = (url: string) => ({ type: 'input_image', image_url: url });
const call = { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{}' };

/** The body, what its error names, and how the message of the error begins. */
type Case = [path: string, body: object, message: RegExp, param?: string];

const cases: Case[] = [
  [
    '/v1/responses',
    {
      instructions: 'Be brief.',
      input: [{ role: 'assistant', content: 'Hi.' }, say(text('See:'), image(address))],
    },
    /^input\[1\]\.content\[1\] names an address/,
    'input[1].content[1]',
  ],
  [
    '/v1/responses',
    {
      instructions: 'Be brief.',
      input: [
        { role: 'user', content: 'Look.' },
        call,
        { type: 'function_call_output', call_id: 'c1', output: [text('Here:'), image(png)] },
      ],
      stream: true,
    },
    /^input\[2\]\.output\[1\] is of type "image_url"/,
    'input[2].output[1]',
  ],
  [
    '/v1/responses',
    { input: [say(image(png))], truncation: 'auto' },
    /^input is of type "image_url"/,
    'input',
  ],
  [
    '/v1/responses/input_tokens',
    { instructions: 'Be brief.', input: [say(image(address))] },
    /^input\[0\]\.content\[0\] names an address/,
    'input[0].content[0]',
  ],
  [
    '/v1/responses',
    {
      input: 'Hi',
      text: { format: { type: 'json_schema', name: 'x', schema: { type: 'string', not: {} } } },
    },
    /^(?!.*response_format)/,
    'text.format',
  ],
  [
    '/v1/messages',
    { max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }], stop_sequences: [''] },
    /^A stop string must have/,
  ],
  [
    '/api/chat',
    { messages: [{ role: 'user', content: 'See:', images: ['iVBORw0KGgo='] }] },
    /^messages\[0\]\.images\[0\] is of type/,
  ],
  [
    '/api/generate',
    { prompt: 'See:', system: 'Be brief.', images: ['iVBORw0KGgo='] },
    /^images\[0\] is of type/,
  ],
  [
    '/api/chat',
    { messages: [{ role: 'user', content: 'Hi' }], options: { seed: 1e30 } },
    /^options\.seed must fit in 64 bits/,
  ],
];

describe('errors name what the client sent', () => {
  let server: TestServer;
  before(async () => {
    server = await startTestServer();
  });

  async function refuse([path, body, message, param]: Case): Promise<void> {
    const response = await server.fetch(path, { json: { model, ...body } });
    const { error } = (await response.json()) as {
      error: string | { message: string; param?: string };
    };
    const told = typeof error === 'string' ? { message: error } : error;
    assert.equal(response.status, 400, told.message);
    assert.match(told.message, message);
    if (param !== undefined) assert.equal(told.param, param);
  }

  for (const one of cases) test(`${one[0]}: ${one[2].source}`, () => refuse(one));

  test('and not what an earlier response holds', async () => {
    const json = { model, input: 'Hello', max_output_tokens: 4 };
    const response = await server.fetch('/v1/responses', { json });
    const { id } = (await response.json()) as { id: string };
    const input = [{ role: 'user', content: 'And?' }, say(image(address))];
    await refuse([
      '/v1/responses',
      { input, previous_response_id: id },
      /^input\[1\]\.content\[0\] names/,
      'input[1].content[0]',
    ]);
  });
});
