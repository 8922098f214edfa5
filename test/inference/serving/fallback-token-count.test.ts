// What is billed where a server does not count: it never does, or it died, or the client left before it could.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, it, type TestContext } from 'node:test';
import type { Task } from '#inference/engine.ts';
import { countWords } from '#inference/engines/scripted/script.ts';
import { createUpstreamEngine } from '#inference/engines/upstream/upstream.ts';
import { createTokenCounts } from '#inference/engines/upstream/usage.ts';
import { createCatalog } from '#inference/models/catalog.ts';
import { createLlama3Counter } from '#inference/models/tokens.ts';
import { createFallbackTokenCounts } from '#inference/serving/fallback-token-count.ts';
import type { Usage } from '#inference/wire/response.ts';
import { newCall, readStream } from '#test/support/engine-call.ts';
import {
  type GatewayOptions,
  gatewayModel,
  readEvents,
  startGateway,
} from '#test/support/gateway.ts';
import { listen } from '#test/support/listen.ts';
import { until } from '#test/support/until.ts';
import { upstreamOptions } from '#test/support/upstream.ts';

const messages = [{ role: 'user' as const, content: 'The wheel turns, and the mill grinds.' }];
const counter = createLlama3Counter();
const task: Task = { kind: 'chat', body: { model: gatewayModel, messages } };
const exact = await counter.count(task, 'llama3-chatml', 1e6);

interface Row {
  status: string;
  prompt_tokens: number;
  completion_tokens: number;
  reserved: boolean;
}

async function start(t: TestContext, options: Partial<GatewayOptions> & { words?: number }) {
  const script = { words: options.words ?? 6, eventDelayMs: 5 };
  const gateway = await startGateway(t, { upstreams: [script], ...options });
  const owner = await gateway.server.join();
  const lastRow = () =>
    until('the request is over', async () => {
      const page = await (await owner('/dashboard/api/usage/requests')).json();
      const [row] = (page as { data: Row[] }).data;
      return row === undefined || row.status === 'running' ? undefined : row;
    });
  return { ...gateway, lastRow };
}

describe('requests that a server did not count', () => {
  it('a client that leaves during a response pays for its prompt and for what was sent', async (t) => {
    const { chat, lastRow } = await start(t, { words: 2000 });
    const leaving = new AbortController();
    const response = await chat({ messages, stream: true }, { signal: leaving.signal });
    const reader = response.body?.getReader();
    for (let reads = 0; reads < 5; reads++) await reader?.read();
    leaving.abort();
    const row = await lastRow();
    assert.equal(row.status, 'aborted');
    assert.equal(row.prompt_tokens, exact);
    assert(row.completion_tokens > 0 && row.completion_tokens < 4000, `${row.completion_tokens}`);
  });

  it('a client that leaves before the first token pays for its prompt, or for its reservation if not streamed', async (t) => {
    for (const stream of [false, true]) {
      const { chat, lastRow, upstreams } = await start(t, {
        upstreams: [{ behaviour: 'slow-headers' }],
      });
      const leaving = new AbortController();
      const asked = chat({ messages, stream, max_tokens: 50, n: 2 }, { signal: leaving.signal });
      await until('it is asked', () => upstreams[0]?.requests.length === 1);
      leaving.abort();
      await assert.rejects(asked);
      const row = await lastRow();
      const counted = [row.status, row.prompt_tokens, row.completion_tokens, row.reserved];
      assert.deepEqual(counted, ['aborted', exact, stream ? 0 : 100, !stream]);
    }
  });

  it('many prompts are estimated, since their server would be asked about each', async (t) => {
    let asked = 0;
    const server = createServer((_request, response) => {
      asked++;
      response.end('{"count":3}');
    });
    const url = `http://127.0.0.1:${await listen(t, server)}/v1`;
    const engine = createUpstreamEngine(upstreamOptions(url));
    t.after(() => engine.close());
    const counts = createFallbackTokenCounts(counter);
    const other = createCatalog().find('lfm-40b');
    assert(other !== undefined);
    const count = (length: number) => {
      const prompt = Array(length).fill('four');
      return counts.ofPrompt(other, { kind: 'completion', body: { model: 'm', prompt } }, engine);
    };
    assert.deepEqual([await count(2), asked], [6, 2]);
    assert.deepEqual([await count(100), asked], [100, 2]);
  });

  it('of other vocabularies the server counts the prompt', async (t) => {
    const { chat, lastRow } = await start(t, { words: 2000, model: { vocabulary: 'other' } });
    const leaving = new AbortController();
    const response = await chat({ messages, stream: true }, { signal: leaving.signal });
    await response.body?.getReader().read();
    leaving.abort();
    assert.equal((await lastRow()).prompt_tokens, countWords(messages));
  });

  it('and what it wrote, however many tokens an event holds', async (t) => {
    const asked: unknown[] = [];
    const event = { choices: [{ index: 0, delta: { content: 'three words each ' } }] };
    const server = createServer(async (request, response) => {
      const body = JSON.parse(Buffer.concat(await request.toArray()).toString());
      if (request.url !== '/tokenize') {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(`data: ${JSON.stringify(event)}\n\n`.repeat(4));
        return;
      }
      asked.push(body);
      response.end(JSON.stringify({ count: countWords(body.prompt) }));
    });
    const port = await listen(t, server);
    const options = upstreamOptions(`http://127.0.0.1:${port}/v1`, { server: 'sglang' });
    const engine = createUpstreamEngine(options);
    t.after(() => engine.close());
    const leaving = new AbortController();
    const reported: number[] = [];
    const onUsage = ({ completion_tokens }: Usage) => reported.push(completion_tokens);
    const items = await engine.stream(task, newCall({ signal: leaving.signal, onUsage }));
    const reading = readStream(items);
    leaving.abort();
    await assert.rejects(reading);
    assert.deepEqual(reported, [12]);
    const prompt = 'three words each '.repeat(4);
    assert.deepEqual(asked, [{ model: 'scripted', prompt, add_special_tokens: false }]);
  });

  it('a stream that dies and can’t be continued is counted the same way', async (t) => {
    const { chat, lastRow } = await start(t, {
      upstreams: [{ behaviour: 'dies-after-first-chunk' }],
    });
    const { events } = await readEvents(await chat({ messages, stream: true }));
    assert('error' in (events.at(-1) ?? {}));
    const row = await lastRow();
    assert.deepEqual([row.status, row.prompt_tokens, row.completion_tokens], ['failed', exact, 1]);
  });

  it('a server that never counts is counted for, and clients see it', async (t) => {
    const { chat, lastRow } = await start(t, {
      upstreams: [{ words: 3, behaviour: 'never-counts' }],
    });
    const said = 'The wheel türnt';
    const completion = await counter.countText(said);
    // The server loads its vocabulary when it can, and until then goes by length.
    await until('the plain answer is counted', async () => {
      const { usage } = (await (await chat({ messages })).json()) as { usage: Row };
      return usage.prompt_tokens === exact && usage.completion_tokens === completion;
    });
    const streamed = await readEvents(
      await chat({ messages, stream: true, stream_options: { include_usage: true } }),
    );
    assert.equal(streamed.text, said);
    assert.deepEqual(
      [streamed.usage?.prompt_tokens, streamed.usage?.completion_tokens],
      [exact, completion],
    );
    const row = await lastRow();
    assert.deepEqual([row.prompt_tokens, row.completion_tokens], [exact, completion]);
  });

  it('other vocabularies are estimated by their length, and every prompt of a request counts', async () => {
    const missing = createFallbackTokenCounts(counter);
    const catalog = createCatalog();
    const other = catalog.find('lfm-40b');
    const known = catalog.find(gatewayModel);
    assert(other !== undefined && known !== undefined);
    const prompts = (prompt: string[] | number[][]): Task => ({
      kind: 'completion',
      body: { model: 'm', prompt },
    });
    assert.equal(
      await missing.ofPrompt(other, prompts(['x'.repeat(40), 'y'.repeat(20)]), null),
      15,
    );
    assert.equal(await missing.ofPrompt(other, prompts([[1, 2, 3], [4]]), null), 4);
    const each = await missing.ofPrompt(known, prompts(['one two three']), null);
    const thrice = prompts(Array(3).fill('one two three'));
    assert.equal(await missing.ofPrompt(known, thrice, null), 3 * each);
    assert.equal(missing.forGenerated(other), undefined);
  });

  it('a count that fails is not an error', async () => {
    const known = createCatalog().find(gatewayModel);
    assert(known !== undefined);
    const broken = { ...counter, countText: () => Promise.reject(new Error('gone')) };
    const count = createFallbackTokenCounts(broken).forGenerated(known);
    assert.equal(await count?.('one two three'), null);
    const generated = createTokenCounts(count)();
    generated.add(`data: ${JSON.stringify({ choices: [{ delta: { content: 'ab' } }] })}\n\n`, 1);
    assert.equal(await generated.total(false), 1);
  });

  it('of a long stream the start is counted and the rest extrapolated', async () => {
    const event = `data: ${JSON.stringify({ choices: [{ delta: { content: 'ab' } }] })}\n\n`;
    const generated = createTokenCounts((text) => text.length)();
    for (let events = 0; events < 5000; events++) generated.add(event, 1);
    assert.equal(await generated.total(false), 10_000);
  });
});
