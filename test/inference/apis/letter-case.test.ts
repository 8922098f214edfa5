// Members in another letter case: servers written in Go take `Model` for `model`, so a request must not mean one thing
// here and another there.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { endpoints } from '#inference/apis/apis.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const model = 'hermes3-8b';
const messages = [{ role: 'user', content: 'Hello' }];

/** As encoding/json reads it: names are compared without their case, and the last one of a kind wins. */
function readAsGo(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(readAsGo);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name.toUpperCase().toLowerCase(),
      readAsGo(member),
    ]),
  );
}

describe('members in another letter case', () => {
  const seen: Record<string, unknown>[] = [];
  const upstream = createServer(async (request, response) => {
    const body = readAsGo(await json(request)) as Record<string, unknown>;
    seen.push(body);
    const message = { role: 'assistant', content: 'ok' };
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ id: 'c', model: body.model, choices, usage }));
  });
  let server: TestServer;

  before(async () => {
    upstream.listen(0, '127.0.0.1');
    await once(upstream, 'listening');
    const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`;
    const backends = [{ name: 'go', url, model: 'cheap', server: 'openai' }];
    server = await startTestServer({
      config: {
        models: { catalog: { [model]: { backends } }, health: { probe_seconds: 3600 } },
      } as object,
    });
  });
  after(() => {
    upstream.close();
    upstream.closeAllConnections();
  });

  const send = (path: string, body: object) => server.fetch(path, { json: body });

  async function assertRefused(path: string, body: object, given: string, known: string) {
    const asked = seen.length;
    const response = await send(path, body);
    const text = await response.text();
    assert.equal(response.status, 400, text);
    const sentence = `${given} must be written as ${known}: names`;
    assert(text.includes(sentence), text);
    assert.equal(seen.length, asked, 'the backend saw the request');
  }

  for (const { url, text } of endpoints)
    test(`are refused at ${url}`, async () => {
      const { model: named, ...others } = text.body;
      await assertRefused(url, { ...text.body, Model: named }, 'Model', 'model');
      await assertRefused(url, { ...others, MODEL: named }, 'MODEL', 'model');
      for (const name of Object.keys(others)) {
        const other = `${name[0]?.toUpperCase()}${name.slice(1)}`;
        await assertRefused(url, { ...text.body, [other]: others[name] }, other, name);
      }
    });

  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } };
  const withPart = (part: object) => ({ messages: [{ role: 'user', content: [part] }] });
  const address = 'http://169.254.169.254/';
  const inner: [object, string, string][] = [
    [{ Max_Tokens: 3000, max_tokens: 1 }, 'Max_Tokens', 'max_tokens'],
    [{ MAX_COMPLETION_TOKENS: 9 }, 'MAX_COMPLETION_TOKENS', 'max_completion_tokens'],
    [{ Stream: true }, 'Stream', 'stream'],
    [{ N: 5 }, 'N', 'n'],
    [{ N_Predict: 5 }, 'N_Predict', 'n_predict'],
    [{ 'maxToken\u017f': 5, 'max_token\u017f': 5 }, 'max_token\u017f', 'max_tokens'],
    [{ '\u212av_transfer_params': {} }, '\u212av_transfer_params', 'kv_transfer_params'],
    [{ Bootstrap_Host: '10.0.0.1' }, 'Bootstrap_Host', 'bootstrap_host'],
    [
      { vllm_xargs: { KV_transfer_params: {} } },
      'vllm_xargs.KV_transfer_params',
      'kv_transfer_params',
    ],
    [{ stream_options: { Include_Usage: false } }, 'stream_options.Include_Usage', 'include_usage'],
    [{ messages: [{ ...messages[0], Content: 'x' }] }, 'messages[0].Content', 'content'],
    [
      withPart({ type: 'text', text: 'x', Type: 'image_url' }),
      'messages[0].content[0].Type',
      'type',
    ],
    [
      withPart({ type: 'image_url', Image_URL: { url: address } }),
      'messages[0].content[0].Image_URL',
      'image_url',
    ],
    [
      withPart({ ...image, image_url: { ...image.image_url, URL: address } }),
      'messages[0].content[0].image_url.URL',
      'url',
    ],
    [
      withPart({ type: 'file', file: { File_Data: address } }),
      'messages[0].content[0].file.File_Data',
      'file_data',
    ],
  ];
  for (const [members, given, known] of inner)
    test(`are refused in a chat: ${given}`, () =>
      assertRefused('/v1/chat/completions', { model, messages, ...members }, given, known));

  test('are refused in a body that a thread parses', () => {
    const long = [{ role: 'user', content: 'x'.repeat(400_000) }];
    const body = { model, messages: long, Max_Tokens: 3000 };
    return assertRefused('/v1/chat/completions', body, 'Max_Tokens', 'max_tokens');
  });

  test('are left alone where a client chooses the names', async () => {
    const response = await send('/v1/chat/completions', {
      model,
      messages,
      Other: 1,
      metadata: { Model: 'x', model: 'y' },
      tools: [
        {
          type: 'function',
          function: {
            name: 'f',
            parameters: { type: 'object', properties: { Type: {}, type: {}, URL: {} } },
          },
        },
      ],
    });
    assert.equal(response.status, 200, await response.text());
    assert.equal(seen.at(-1)?.model, 'cheap');
  });
});
