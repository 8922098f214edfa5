// Addresses in messages: nothing is fetched that the operator has not allowed, neither here nor by a backend.

import assert from 'node:assert/strict';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { BodyRoom } from '#http/body/room.ts';
import type { Task } from '#inference/engine.ts';
import { InferenceError } from '#inference/errors.ts';
import type { FetchOptions } from '#inference/images/fetch-image.ts';
import { imageBounds, inlineMedia } from '#inference/images/remote-media.ts';
import { isPublicAddress } from '#lib/network/public-address.ts';
import { certificate, certificateKey } from '#test/support/certificate.ts';
import { gatewayModel, startGateway } from '#test/support/gateway.ts';
import { listen } from '#test/support/listen.ts';
import { until } from '#test/support/until.ts';

const { signal } = new AbortController();
const from = { caller: 'a', signal };
const toFetching = (hosts: string[], options: FetchOptions = {}, bounds = imageBounds) => ({
  hosts,
  room: new BodyRoom(bounds, 'images'),
  options,
});

const chat = (...parts: Record<string, unknown>[]): Task => ({
  kind: 'chat',
  body: {
    model: 'm',
    messages: [{ role: 'user', content: parts.map((part) => ({ type: 'image_url', ...part })) }],
  },
});
const image = (url: string) => ({ type: 'image_url', image_url: { url, detail: 'low' } });
const isRefused = (error: unknown) =>
  error instanceof InferenceError && error.status === 400 && /content\[0\]/.test(error.message);

describe('an address in a message', () => {
  test('is refused in every form, and a data URL is not touched', async () => {
    const data = chat(image('data:image/png;base64,iVBORw0K'));
    assert.deepEqual(await inlineMedia(data, toFetching([]), from), { task: data, lease: null });
    for (const part of [
      image('http://10.0.0.1/a.png'),
      image('https://example.com/a.png'),
      image(' HTTPS://example.com/a.png'),
      image('file:///etc/passwd'),
      image('/var/lib/secret.png'),
      image('//10.0.0.1/a.png'),
      image('\u0001http://10.0.0.1/a.png'),
      image('ht\ttp://10.0.0.1/a.png'),
      { image_url: 'https://example.com/a.png' },
      { type: 'file', file: { url: 'data:a', file_url: 'http://10.0.0.1/' } },
      { type: 'file', file: { file_data: 'http://10.0.0.1/' } },
      { type: 'file', file: { file_id: 'https://10.0.0.1/' } },
      { type: 'input_audio', input_audio: { data: 'http://10.0.0.1/', format: 'wav' } },
      { type: 'video_url', video_url: { url: 'https://allowed.example/a.mp4' } },
      { type: 'audio_url', audio_url: { url: 'http://127.0.0.1/' } },
      image('http://allowed.example/a.png'),
      image('https://user@allowed.example/a.png'),
      image('https://allowed.example:8443/a.png'),
      image('https://allowed.example.evil.test/a.png'),
      image('https://evil.test/?allowed.example'),
    ])
      await assert.rejects(
        inlineMedia(chat(part), toFetching(['allowed.example']), from),
        isRefused,
      );
  });

  test('does not reach a backend', async (t) => {
    const { chat: send, upstreams } = await startGateway(t, { upstreams: [{}] });
    const content = [image('http://169.254.169.254/latest/meta-data')];
    const response = await send({ messages: [{ role: 'user', content }] });
    assert.equal(response.status, 400);
    assert.match(await response.text(), /inference\.image_hosts/);
    assert.equal(upstreams[0]?.requests.length, 0);
  });

  test('does not reach a backend that only counts tokens', async (t) => {
    const { server, upstreams } = await startGateway(t, { upstreams: [{}] });
    const url = 'http://169.254.169.254/latest/meta-data';
    for (const [path, part] of [
      ['/tokenize', image(url)],
      ['/v1/responses/input_tokens', { type: 'input_image', image_url: url }],
    ] as const) {
      const messages = [{ role: 'user', content: [part] }];
      const json = { model: gatewayModel, messages, input: messages };
      const response = await server.fetch(path, { json });
      assert.equal(response.status, 400, path);
      assert.match(await response.text(), /inference\.image_hosts/);
    }
    assert.equal(upstreams[0]?.requests.length, 0);
  });

  test('becomes a text for clients that repeat it with every turn', async (t) => {
    const { server, upstreams } = await startGateway(t, { upstreams: [{}] });
    const source = { type: 'url', url: 'http://169.254.169.254/latest/meta-data' };
    const content = [{ type: 'image', source }];
    const json = { model: gatewayModel, max_tokens: 9, messages: [{ role: 'user', content }] };
    const counted = await server.fetch('/v1/messages/count_tokens', { json });
    assert.equal(counted.status, 200, await counted.text());
    const response = await server.fetch('/v1/messages', { json });
    assert.equal(response.status, 200, await response.text());
    const sent = JSON.stringify(upstreams[0]?.requests);
    assert.match(sent, /image_url is missing here: this server does not fetch it/);
    assert.doesNotMatch(sent, /meta-data/);
  });

  test('does not reach a backend that counts the prompt of a stream', async (t) => {
    const seen: string[] = [];
    const backend = createHttpServer(async (request, response) => {
      seen.push(`${request.url} ${await text(request)}`);
      if (request.url !== '/v1/chat/completions') return response.end('{"count":3}');
      response.setHeader('content-type', 'text/event-stream');
      const choices = [{ index: 0, delta: { content: 'Hi' }, finish_reason: 'stop' }];
      response.end(`data: ${JSON.stringify({ choices })}\n\ndata: [DONE]\n\n`);
    });
    const url = `http://127.0.0.1:${await listen(t, backend)}/v1`;
    const { server } = await startGateway(t, {
      upstreams: [{}],
      backend: { url },
      model: { vocabulary: 'other' },
    });
    const source = { type: 'url', url: 'http://169.254.169.254/latest/meta-data' };
    const messages = [{ role: 'user', content: [{ type: 'image', source }] }];
    const json = { model: gatewayModel, max_tokens: 9, stream: true, messages };
    const response = await server.fetch('/v1/messages', { json });
    assert.match(await response.text(), /"text":"Hi"/);
    assert(seen.some((one) => one.startsWith('/tokenize')));
    assert.doesNotMatch(seen.join(), /meta-data/);
  });

  test('becomes a text as often as a body has room for it', async (t) => {
    const { server } = await startGateway(t, { upstreams: [{}] });
    const block = { type: 'image', source: { url: 'x' } };
    const messages = [{ role: 'user', content: Array(45_000).fill(block) }];
    const json = { model: gatewayModel, messages };
    const response = await server.fetch('/v1/messages/count_tokens', { json });
    assert.equal(response.status, 200);
    assert(((await response.json()) as { input_tokens: number }).input_tokens > 45_000);
  });

  test('of an allowed host counts as a fixed number of tokens, and is not fetched', async (t) => {
    const { server } = await startGateway(t, {
      upstreams: [{}],
      inference: { image_hosts: ['images.invalid'] },
    });
    const url = 'https://images.invalid/a.png';
    const source = { type: 'image', source: { type: 'url', url } };
    for (const [path, part] of [
      ['/v1/messages/count_tokens', source],
      ['/v1/responses/input_tokens', { type: 'input_image', image_url: url }],
    ] as const) {
      const count = async (parts: object[]) => {
        const messages = [{ role: 'user', content: parts }];
        const json = { model: gatewayModel, messages, input: messages };
        const response = await server.fetch(path, { json });
        assert.equal(response.status, 200, path);
        return ((await response.json()) as { input_tokens: number }).input_tokens;
      };
      const added = (await count([part, part])) - (await count([part]));
      assert(added >= 1_000 && added < 1_010, `${path}: ${added}`);
    }
  });

  test('of a private network is never public', () => {
    for (const address of ['127.0.0.1', '10.1.2.3', '169.254.169.254', '::1', '::ffff:127.0.0.1'])
      assert.equal(isPublicAddress(address), false, address);
    for (const address of ['fd00::1', 'fe80::1', '64:ff9b::7f00:1', '2002:7f00:1::', '0.0.0.0', ''])
      assert.equal(isPublicAddress(address), false, address);
    for (const address of ['1.1.1.1', '2606:4700::1111'])
      assert.equal(isPublicAddress(address), true, address);
  });
});

describe('an image of an allowed host', () => {
  const host = '127.0.0.1';

  async function fetchFrom(
    t: Parameters<typeof listen>[0],
    head: [number, Record<string, string>],
    options: { isPublic?: (address: string) => boolean } = {},
  ) {
    const seen: string[] = [];
    const server = createServer({ cert: certificate, key: certificateKey }, (request, response) => {
      seen.push(request.url ?? '');
      response.writeHead(...head).end('image');
    });
    const port = await listen(t, server);
    const task = chat(image(`https://${host}:${port}/a.png`));
    const done = inlineMedia(
      task,
      toFetching([`${host}:${port}`], {
        ca: certificate,
        isPublic: options.isPublic ?? (() => true),
      }),
      from,
    );
    return { done, seen };
  }

  test('is sent as a data URL', async (t) => {
    const { done } = await fetchFrom(t, [200, { 'content-type': 'image/png' }]);
    const { body } = (await done).task;
    assert('messages' in body);
    const url = `data:image/png;base64,${Buffer.from('image').toString('base64')}`;
    assert.deepEqual(body.messages[0]?.content, [image(url)]);
  });

  test('is fetched only once there is room for it, of all callers and of one', async (t) => {
    const held: ServerResponse[] = [];
    const server = createServer({ cert: certificate, key: certificateKey }, (_, response) => {
      held.push(response);
    });
    const name = `${host}:${await listen(t, server)}`;
    const task = chat(image(`https://${name}/a.png`));
    const options = { ca: certificate, isPublic: () => true };
    const maxCallerBytes = imageBounds.maxBytes / 6;
    const bounds = { ...imageBounds, maxBytes: 1.5 * maxCallerBytes, maxCallerBytes };
    const fetching = toFetching([name], options, { ...bounds, maxWaiting: 1, maxCallerWaiting: 1 });
    const fetch = async (caller: string) => inlineMedia(task, fetching, { caller, signal });
    const answer = (response: ServerResponse | undefined) =>
      response?.writeHead(200, { 'content-type': 'image/png' }).end('image');
    const [first, second] = [fetch('a'), fetch('a')];
    await assert.rejects(fetch('a'), /Too many of your images are waiting/);
    const other = fetch('b');
    await assert.rejects(fetch('c'), /busy reading other images/);
    await until('two are fetched', () => held.length === 2);
    answer(held[0]);
    const { lease } = await first;
    await until('the next one is fetched', () => held.length === 3);
    answer(held[1]);
    answer(held[2]);
    for (const done of [await second, await other]) done.lease?.leave();
    assert.equal(fetching.room.bytes, 'data:image/png;base64,aW1hZ2U='.length);
    lease?.leave();
    assert.equal(fetching.room.bytes, 0);
  });

  test('is refused if it is a redirect, something else, or in a private network', async (t) => {
    const html = await fetchFrom(t, [200, { 'content-type': 'text/html' }]);
    await assert.rejects(html.done, isRefused);
    const moved = await fetchFrom(t, [302, { location: 'https://10.0.0.1/' }]);
    await assert.rejects(moved.done, isRefused);
    const head: [number, Record<string, string>] = [200, { 'content-type': 'image/png' }];
    const inside = await fetchFrom(t, head, { isPublic: isPublicAddress });
    await assert.rejects(inside.done, /private network/);
    assert.deepEqual(inside.seen, []);
  });

  test('is fetched from the address that was checked, though its name changes', async (t) => {
    let connections = 0;
    const server = createServer({ cert: certificate, key: certificateKey });
    server.on('connection', () => connections++);
    const name = `rebinding.example:${await listen(t, server)}`;
    const task = chat(image(`https://${name}/a.png`));
    const answers = ['127.0.0.1', '127.0.0.2'];
    let asked = 0;
    const resolve = async () => [{ address: answers[asked++] ?? '', family: 4 }];
    const isPublic = (address: string) => address === '127.0.0.1';
    const fetched = async () => inlineMedia(task, toFetching([name], { resolve, isPublic }), from);
    // The certificate is not that of the host, which only the first address gets to show.
    await assert.rejects(fetched, /did not send it/);
    assert.deepEqual([asked, connections], [1, 1]);
    await assert.rejects(fetched, /private network/);
    assert.deepEqual([asked, connections], [2, 1]);
    const mixed = async () => ['127.0.0.1', '10.0.0.1'].map((address) => ({ address, family: 4 }));
    const both = async () =>
      inlineMedia(task, toFetching([name], { resolve: mixed, isPublic }), from);
    await assert.rejects(both, /private network/);
  });
});
