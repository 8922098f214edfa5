// Large plain responses are read in a thread. What clients and accounting see of them is what they see of small ones.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { type TestContext, test } from 'node:test';
import { EngineError, type Task } from '#inference/engine.ts';
import { createResponseThread } from '#inference/engines/upstream/plain/response-thread.ts';
import {
  createUpstreamEngine,
  type UpstreamOptions,
} from '#inference/engines/upstream/upstream.ts';
import { toResponse } from '#inference/wire/envelope.ts';
import { type EngineResponse, type Usage, WrittenResponse } from '#inference/wire/response.ts';
import { systemClock } from '#lib/clock.ts';
import { newCall } from '#test/support/engine-call.ts';
import { startGateway } from '#test/support/gateway.ts';
import { listen } from '#test/support/listen.ts';
import { upstreamOptions } from '#test/support/upstream.ts';

/** Longer than what is read on the event loop; three bytes a character, so that blocks end inside of one. */
const long = '水'.repeat(500_000);
const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };
const stopped = { index: 0, finish_reason: 'stop' };

const chat: Task = {
  kind: 'chat',
  body: { model: 'm', messages: [{ role: 'user', content: 'x' }] },
};
const text: Task = { kind: 'completion', body: { model: 'm', prompt: 'x', stop_token_ids: [7] } };
const scores = {
  content: [{ token: '水', logprob: -1, top_logprobs: [{ token: 'a', logprob: -2 }] }],
};

interface Case {
  task: Task;
  body: unknown;
  status?: number;
  overrides?: Partial<UpstreamOptions>;
}

const answers: Record<string, Case> = {
  'a chat': { task: chat, body: { choices: [{ ...stopped, message: { content: long } }], usage } },
  'members of the server’s own': {
    task: chat,
    body: {
      id: 'theirs',
      model: 'theirs',
      1: 'one',
      choices: [{ ...stopped, message: { content: long, tool_calls: [] }, seen: true }],
      usage: { ...usage, completion_tokens_details: { reasoning_tokens: 1 } },
      system_fingerprint: 'fp',
      timings: { prompt_ms: 1 },
      before: [1],
      ['__proto__']: { a: 1 },
    },
  },
  'a text with scores and a stop of SGLang': {
    task: text,
    body: { choices: [{ ...stopped, text: long, logprobs: scores, matched_stop: 7 }], usage },
  },
  'no counts': { task: chat, body: { choices: [{ ...stopped, message: { content: long } }] } },
  'no counts, and a text that is counted': {
    task: chat,
    body: { choices: [{ ...stopped, message: { content: 'short' } }], padding: long },
    overrides: { countGenerated: ({ length }) => length * 100 },
  },
  'counts that can’t be true': {
    task: chat,
    body: {
      choices: [{ ...stopped, message: { content: long } }],
      usage: { ...usage, completion_tokens: 1e12 },
    },
  },
  'counts of one choice of two': {
    task: chat,
    body: {
      choices: [0, 1].map((index) => ({ ...stopped, index, message: { content: long } })),
      usage,
    },
    overrides: { server: 'llama-server' },
  },
};

const failures: Record<string, Case> = {
  'no JSON': { task: chat, body: `<html>${long}` },
  'no choices': { task: chat, body: { choices: [], padding: long } },
  'no end': { task: chat, body: { choices: [{ index: 0, message: { content: long } }] } },
  'an answer broken off': {
    task: chat,
    body: { choices: [{ message: { content: long }, finish_reason: 'abort' }] },
  },
  'a message that is none': { task: chat, body: { choices: [{ ...stopped, message: [long] }] } },
  'an error that says too much': {
    task: chat,
    body: { error: { message: 'This is no request', code: 400, param: 'messages', echo: long } },
  },
  'an error without words': { task: chat, body: { error: [long] } },
};

/** Engines before the same server, with a thread for large responses and without. */
async function startEngines(t: TestContext, { body, status = 200, overrides = {} }: Case) {
  const bytes = typeof body === 'string' ? body : JSON.stringify(body);
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(status, { 'content-type': 'application/json' }).end(bytes);
  });
  const url = `http://127.0.0.1:${await listen(t, server)}/v1`;
  const responses = createResponseThread(systemClock);
  const options = { ...upstreamOptions(url), ...overrides };
  const engines = {
    inline: createUpstreamEngine(options),
    threaded: createUpstreamEngine({ ...options, responses }),
  };
  t.after(async () => {
    await Promise.all([engines.inline.close(), engines.threaded.close()]);
    await responses.close();
  });
  return engines;
}

function toBytes(answer: EngineResponse, task: Task): string {
  if (!(answer instanceof WrittenResponse))
    return JSON.stringify(toResponse(newCall({}, task.kind).envelope, answer));
  const reported = Buffer.from(JSON.stringify(answer.usage));
  return Buffer.concat([answer.before, reported, answer.after]).toString();
}

for (const [name, one] of Object.entries(answers)) {
  test(`a large response is the same in the thread and inline: ${name}`, async (t) => {
    const { inline, threaded } = await startEngines(t, one);
    const reported: Usage[] = [];
    const call = () => newCall({ onUsage: (soFar) => reported.push(soFar) }, one.task.kind);
    const here = await inline.respond(one.task, call());
    const there = await threaded.respond(one.task, call());
    assert.ok(there instanceof WrittenResponse && !(here instanceof WrittenResponse));
    assert.equal(toBytes(there, one.task), toBytes(here, one.task));
    assert.deepEqual(there.usage, here.usage);
    assert.deepEqual(reported, [here.usage, here.usage]);
  });
}

for (const [name, one] of Object.entries(failures)) {
  test(`a large response fails the same way in the thread and inline: ${name}`, async (t) => {
    const engines = Object.values(await startEngines(t, one));
    const [here, there] = await Promise.all(
      engines.map((engine) =>
        engine.respond(one.task, newCall()).then(
          () => assert.fail('it was answered'),
          ({ failure, message, code, param, isDoubtful }: EngineError) => ({
            failure,
            message,
            code,
            param,
            isDoubtful,
          }),
        ),
      ),
    );
    assert.ok(here?.failure !== undefined);
    assert.deepEqual(there, here);
  });
}

test('a small response is read at once', async (t) => {
  const body = { choices: [{ ...stopped, message: { content: 'Hi' } }], usage };
  const { threaded } = await startEngines(t, { task: chat, body });
  const answer = await threaded.respond(chat, newCall());
  assert.ok(!(answer instanceof WrittenResponse));
});

test('an error larger than a mebibyte is not read', async (t) => {
  const { threaded } = await startEngines(t, { task: chat, status: 400, body: { error: long } });
  await assert.rejects(
    threaded.respond(chat, newCall()),
    (error) => error instanceof EngineError && /responded with status 400/.test(error.message),
  );
});

test('a client gets a large response whole, with our envelope and its counts', async (t) => {
  const words = 60_000;
  const gateway = await startGateway(t, { upstreams: [{ words }] });
  const response = await gateway.chat({ max_tokens: words });
  assert.equal(response.status, 200);
  const bytes = Buffer.from(await response.arrayBuffer());
  assert.ok(bytes.length > 256 * 1024);
  assert.equal(response.headers.get('content-length'), String(bytes.length));
  const body = JSON.parse(bytes.toString());
  assert.match(body.id, /^chat-[0-9a-f]{32}$/);
  assert.equal(body.id, `chat-${response.headers.get('x-request-id')}`);
  assert.equal(body.model, 'hermes3-8b');
  assert.equal(body.usage.completion_tokens, words);
  assert.ok(body.choices[0].message.content.length > 256 * 1024);
});
