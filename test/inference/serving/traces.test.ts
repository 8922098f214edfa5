// Traces leave as OTLP to a collector on a socket, one span per request, and go on at the backend.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { startTestServer } from '#test/support/server.ts';

interface Span {
  traceId: string;
  parentSpanId?: string;
  spanId: string;
  name: string;
  status: { code?: number };
  attributes: { key: string; value: { stringValue?: string; intValue?: number } }[];
}

/** Takes whatever is posted; answers chat as an upstream would. */
async function listen(bodies: { url: string; traceparent: string; text: string }[]) {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      const { url = '', headers } = request;
      bodies.push({
        url,
        traceparent: String(headers.traceparent),
        text: String(Buffer.concat(parts)),
      });
      response.setHeader('content-type', 'application/json');
      response.end(url.endsWith('/chat/completions') ? answer : '{}');
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const answer = JSON.stringify({
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 },
});

describe('traces', () => {
  const bodies: { url: string; traceparent: string; text: string }[] = [];
  let outside: Awaited<ReturnType<typeof listen>>;
  before(async () => {
    outside = await listen(bodies);
  });
  after(() => outside.server.close());

  test('a request is one span with gen_ai names in its caller’s trace, and its backend’s parent', async () => {
    const backend = { name: 'far', url: `${outside.url}/v1`, server: 'openai' as const };
    const server = await startTestServer({
      config: {
        telemetry: { otlp_url: outside.url },
        models: { catalog: { 'hermes3-8b': { backends: [backend] } } },
      },
    });
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` };
    const secret = 'a prompt nobody else shall read';
    const json = { model: 'hermes3-8b', messages: [{ role: 'user', content: secret }] };
    const response = await server.fetch('/v1/chat/completions', { json, headers });
    assert.equal(response.status, 200);
    await response.json();
    await server.stop();

    const posted = bodies.filter(({ url }) => url === '/v1/traces');
    const spans = posted.flatMap(({ text }) =>
      JSON.parse(text).resourceSpans.flatMap((one: { scopeSpans: { spans: Span[] }[] }) =>
        one.scopeSpans.flatMap((scope) => scope.spans),
      ),
    ) as Span[];
    assert.equal(spans.length, 1);
    const [span] = spans;
    assert.equal(span?.name, 'chat hermes3-8b');
    assert.equal(span?.traceId, traceId);
    assert.equal(span?.parentSpanId, 'b7ad6b7169203331');
    const attributes = new Map(
      span?.attributes.map(({ key, value }) => [key, Object.values(value)[0]]),
    );
    assert.equal(attributes.get('gen_ai.operation.name'), 'chat');
    assert.equal(attributes.get('gen_ai.response.model'), 'hermes3-8b');
    assert.equal(Number(attributes.get('gen_ai.usage.input_tokens')), 7);
    assert.equal(Number(attributes.get('gen_ai.usage.output_tokens')), 2);
    assert.equal(attributes.get('millrace.backend'), 'far');
    assert.ok(!posted.some(({ text }) => text.includes(secret)));
    const asked = bodies.find(({ url }) => url.endsWith('/chat/completions'));
    assert.equal(asked?.traceparent, `00-${traceId}-${span?.spanId}-01`);
  });
});
