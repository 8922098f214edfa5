// System messages in the middle of a chat: kept where the backend takes them, and notes of the user where it refuses.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { type TestContext, test } from 'node:test';
import { memberTexts } from '#http/body/json.ts';
import type { Task } from '#inference/engine.ts';
import { createUpstreamEngine } from '#inference/engines/upstream/upstream.ts';
import { toSystemNotes } from '#inference/system-notes.ts';
import { newCall } from '#test/support/engine-call.ts';
import { listen } from '#test/support/listen.ts';
import { createPair, upstreamOptions } from '#test/support/upstream.ts';

const task = {
  kind: 'chat',
  body: {
    model: 'm',
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
      { role: 'system', content: 'It is noon.' },
      { role: 'user', content: 'Go on.' },
    ],
  },
} satisfies Task;
const note = { role: 'user', content: '<system-note>\nIt is noon.\n</system-note>' };

/** A server like vLLM with a template that takes a system message only at the start. */
async function startStrictUpstream(t: TestContext, message: string, canTemplate = true) {
  const asked: { path: string | undefined; roles: string }[] = [];
  const server = createServer(async (request, response) => {
    const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>);
    const { messages } = JSON.parse(Buffer.concat(chunks).toString()) as {
      messages: { role: string; content: string }[];
    };
    asked.push({ path: request.url, roles: messages.map(({ role }) => role[0]).join('') });
    response.setHeader('content-type', 'application/json');
    if (!canTemplate || messages.slice(1).some(({ role }) => role === 'system')) {
      response.statusCode = 400;
      return response.end(JSON.stringify({ error: { message, code: 400 } }));
    }
    assert.deepEqual(messages[2], note);
    const answer = { role: 'assistant', content: 'Yes.' };
    const choices = [{ index: 0, message: answer, finish_reason: 'stop' }];
    const usage = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 };
    response.end(JSON.stringify(request.url === '/tokenize' ? { count: 9 } : { choices, usage }));
  });
  const port = await listen(t, server);
  const engine = createUpstreamEngine(upstreamOptions(`http://127.0.0.1:${port}/v1`));
  t.after(() => engine.close());
  return { engine, asked };
}

test('a backend that takes system messages anywhere gets them in their place', async (t) => {
  const { upstream, engine } = await createPair(t);
  await engine.respond(task, newCall());
  assert.equal(upstream.requests.length, 1);
  assert.deepEqual(upstream.requests[0]?.body.messages, task.body.messages);
});

test('a backend that refuses them gets notes, and is asked twice only once', async (t) => {
  const { engine, asked } = await startStrictUpstream(
    t,
    'System message must be at the beginning.',
  );
  const signal = new AbortController().signal;
  assert.equal(await engine.countPromptTokens(task, signal), 9);
  const { usage } = await engine.respond(task, newCall());
  assert.equal(usage.completion_tokens, 2);
  assert.deepEqual(asked, [
    { path: '/tokenize', roles: 'susu' },
    { path: '/tokenize', roles: 'suuu' },
    { path: '/v1/chat/completions', roles: 'suuu' },
  ]);
});

test('the JSON that a large body came with is not sent instead of the notes', async (t) => {
  const { engine } = await startStrictUpstream(t, 'System message must be at the beginning.');
  const text = Buffer.from(JSON.stringify(task.body.messages));
  const body = { ...task.body, [memberTexts]: new Map([[task.body.messages, text]]) };
  const { usage } = await engine.respond({ ...task, body }, newCall());
  assert.equal(usage.completion_tokens, 2);
});

test('a request that is refused either way reports the first refusal', async (t) => {
  const { engine, asked } = await startStrictUpstream(t, 'No tools, please.', false);
  await assert.rejects(engine.respond(task, newCall()), /No tools, please/);
  assert.deepEqual(
    asked.map(({ roles }) => roles),
    ['susu', 'suuu'],
  );
});

test('parts stay as they are between the marks, and a chat without late ones has no notes', () => {
  const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,aa' } };
  const [, noted] =
    toSystemNotes([
      { role: 'user', content: 'Hi' },
      { role: 'developer', content: [image] },
    ]) ?? [];
  assert.deepEqual(noted, {
    role: 'user',
    content: [
      { type: 'text', text: '<system-note>\n' },
      image,
      { type: 'text', text: '\n</system-note>' },
    ],
  });
  assert.equal(toSystemNotes([{ role: 'system' }, { role: 'user' }]), null);
});
