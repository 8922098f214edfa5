// The upstream engine before a scripted server: requests go out as they came, answers come back as they
// are, and what the server does wrong stays the server's.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { memberTexts, parseJson } from '#http/body/json.ts';
import type { Engine, Task } from '#inference/engine.ts';
import type { Behaviour } from '#inference/engines/scripted/behaviours.ts';
import { parseResponse } from '#inference/engines/upstream/plain/parse-response.ts';
import { toRequestBody } from '#inference/engines/upstream/request-body.ts';
import type { UpstreamServer } from '#inference/engines/upstream/servers.ts';
import {
  createUpstreamEngine,
  probeUpstream,
  type UpstreamOptions,
} from '#inference/engines/upstream/upstream.ts';
import { toInferenceError } from '#inference/errors.ts';
import type { CompletionChoice, Usage } from '#inference/wire/response.ts';
import { chat, completion } from '#test/support/builtin.ts';
import { newCall, readStream } from '#test/support/engine-call.ts';
import { gatewayModel, startGateway } from '#test/support/gateway.ts';
import { listen } from '#test/support/listen.ts';
import { until } from '#test/support/until.ts';
import { createPair, newTrust, upstreamOptions } from '#test/support/upstream.ts';

const reason = new Error('The client left');
const url = 'http://10.0.0.1/v1';

async function readAll(engine: Engine, task = chat('Hi'), call = newCall()): Promise<string> {
  let text = '';
  for await (const block of await engine.stream(task, call)) text += block;
  return text;
}

describe('the upstream engine', () => {
  test('passes on every member, and replaces only the model’s name', async (t) => {
    const overrides = { apiKey: 'secret', headers: { 'x-team': 'mill' } };
    const { upstream, engine } = await createPair(t, { apiKey: 'secret' }, overrides);
    const body = {
      model: 'asked',
      messages: [{ role: 'user' as const, content: 'Größe 👩‍🔧', vendor: [1] }],
      temperature: 0,
      stop: null,
      vendor_options: { type: 'object' },
      chat_template_kwargs: { enable_thinking: false },
      stream_options: { continuous_usage_stats: false },
    };
    await readAll(engine, { kind: 'chat', body });
    const { stop, ...kept } = body;
    const [streamed] = upstream.requests;
    assert.deepEqual(streamed?.body, {
      ...kept,
      model: 'scripted',
      stream: true,
      stream_options: { continuous_usage_stats: false, include_usage: true },
    });
    assert.equal(streamed?.path, '/v1/chat/completions');
    assert.equal(streamed?.headers['x-team'], 'mill');
    assert.equal(streamed?.headers.authorization, 'Bearer secret');
    const text = { prompt: [1, 2], suffix: 'x', max_tokens: 9 };
    await engine.respond(completion({ ...text, stream: false }), newCall());
    const plain = { model: 'scripted', temperature: 0, ...text };
    assert.deepEqual(upstream.requests[1]?.body, plain);
    assert.equal(upstream.requests[1]?.path, '/v1/completions');
  });

  test('sends long members as the bytes that a thread wrote, between the short ones', async (t) => {
    const { upstream, engine } = await createPair(t);
    const content = 'Größe "👩‍🔧"\n'.repeat(100_000);
    const messages = [{ role: 'user' as const, content }];
    const long = { zz: ['x'.repeat(10_000)] };
    const body = { model: 'asked', messages, top_k: 4, ...long, user: 'é', stop: null };
    const texts = new Map(
      [messages, long.zz].map((member) => [member, Buffer.from(JSON.stringify(member))]),
    );
    const task: Task = { kind: 'chat', body: { ...body, [memberTexts]: texts } as never };
    await engine.respond(task, newCall());
    const { stop, ...kept } = body;
    assert.deepEqual(upstream.requests[0]?.body, { ...kept, model: 'scripted' });
    assert(
      Array.isArray(toRequestBody(task, { model: 'm', server: 'vllm', url: 'http://a/v1' }, false)),
    );
  });

  test('sends long integers as the client wrote them', async (t) => {
    const sent: string[] = [];
    const backend = createServer(async (request, response) => {
      sent.push(await text(request));
      response.end('{"choices":[{"index":0,"text":"a","finish_reason":"stop"}]}');
    });
    const { server } = await startGateway(t, {
      upstreams: [{}],
      backend: { url: `http://127.0.0.1:${await listen(t, backend)}/v1` },
    });
    const long = '9223372036854775807';
    for (const [members, expected] of [
      [`"seed":${long}`, `"seed":${long}`],
      ['"seed":-9223372036854775808', '"seed":-9223372036854775808'],
      ['"seed":7', '"seed":7'],
      // A seed is read from its own member, and the last one counts.
      [`"extra":{"seed":9007199254740993},"seed" : ${long} `, `"seed":${long}`],
      [`"seed":${long},"seed":5`, '"seed":5'],
      [`"other":${long},"seed":7`, '"seed":7'],
      ['"mine":12345678901234567890,"other":1', '"mine":12345678901234567890,"other":1'],
    ] as const) {
      const response = await server.fetch('/v1/completions', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: `{"model":"${gatewayModel}","prompt":"a \\"seed\\": ${long}1","max_tokens":1,${members}}`,
      });
      assert.equal(response.status, 200, await response.text());
      assert(sent.at(-1)?.includes(expected), `${sent.at(-1)} has no ${expected}`);
    }
  });

  test('parses a body once and without a reviver, which would take seconds', (context) => {
    const parse = context.mock.method(JSON, 'parse');
    const body = '{"seed":9223372036854775807,"a":[1,2,3]}';
    parseJson(Buffer.from(body));
    assert.deepEqual(
      parse.mock.calls.map((call) => call.arguments),
      [[body]],
    );
  });

  test('sends the old name of the token limit to servers that know only that', () => {
    const sentTo = (server: UpstreamServer, limits: object, to = url) => {
      const body = JSON.parse(
        String(
          toRequestBody(chat({ messages: [], ...limits }), { model: 'm', server, url: to }, true),
        ),
      );
      return [body.max_tokens, body.max_completion_tokens];
    };
    const limits = { max_tokens: 3, max_completion_tokens: 10 };
    for (const server of ['ollama', 'llama-server', 'openai'] as const)
      assert.deepEqual(sentTo(server, limits), [10, 10]);
    for (const to of ['https://api.openai.com/v1', 'https://me.openai.azure.com/openai/v1'])
      assert.deepEqual(sentTo('openai', limits, to), [3, 10], 'which refuses both at once');
    assert.deepEqual(sentTo('openai', limits, 'https://api.openai.com.example/v1'), [10, 10]);
    assert.deepEqual(sentTo('vllm', limits), [3, 10]);
    assert.deepEqual(sentTo('ollama', { max_tokens: 3 }), [3, undefined]);
  });

  test('sends no address that an engine would connect to', () => {
    const addresses = {
      kv_transfer_params: { do_remote_prefill: true, remote_host: '10.0.0.1', remote_port: 22 },
      ec_transfer_params: { peer_host: '10.0.0.1' },
      vllm_xargs: { kv_transfer_params: '10.0.0.1', kept: 1 },
      ...{ bootstrap_host: '10.0.0.1', bootstrap_port: 22, bootstrap_room: 1 },
    };
    for (const server of ['vllm', 'sglang'] as const) {
      const task = chat({ messages: [], ...addresses });
      const sent = String(toRequestBody(task, { model: 'm', server, url }, false));
      assert.doesNotMatch(sent, /_transfer|bootstrap|10\.0\.0\.1/);
      assert.match(sent, /"vllm_xargs":\{"kept":1\}/);
    }
  });

  test('translates include_stop_str_in_output for SGLang', () => {
    const sent = (body: object) =>
      JSON.parse(String(toRequestBody(chat(body), { model: 'm', server: 'sglang', url }, false)))
        .no_stop_trim;
    assert.equal(sent({ messages: [], include_stop_str_in_output: true }), true);
    assert.equal(
      sent({ messages: [], include_stop_str_in_output: true, no_stop_trim: false }),
      false,
    );
    assert.equal(sent({ messages: [] }), undefined);
  });

  test('translates members that llama-server names differently, and only for it', () => {
    const tool = (name: string) => ({ type: 'function' as const, function: { name } });
    const task = chat({
      messages: [{ role: 'assistant', content: 'Once' }],
      continue_final_message: true,
      repetition_penalty: 1.1,
      tools: [tool('f'), tool('g')],
      tool_choice: tool('g'),
    });
    const sentTo = (server: 'llama-server' | 'vllm') =>
      JSON.parse(String(toRequestBody(task, { model: 'm', server, url }, false))) as Record<
        string,
        unknown
      >;
    const { repeat_penalty, tools, tool_choice } = sentTo('llama-server');
    assert.deepEqual(
      { repeat_penalty, tools, tool_choice },
      { repeat_penalty: 1.1, tools: [tool('g')], tool_choice: 'required' },
    );
    assert.deepEqual(sentTo('vllm'), { ...task.body, model: 'm', add_generation_prompt: false });
  });

  test('tokens are counted beside /v1, also behind a path of a proxy', async (t) => {
    const paths: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      paths.push(request.url);
      response.setHeader('content-type', 'application/json').end('{"count":5}');
    });
    const port = await listen(t, server);
    for (const base of ['/v1', '/a/proxy/v1', '/a/proxy']) {
      const url = `http://127.0.0.1:${port}${base}`;
      const engine = createUpstreamEngine(upstreamOptions(url, { server: 'vllm' }));
      t.after(() => engine.close());
      const task: Task = { kind: 'completion', body: { model: 'm', prompt: 'Hi' } };
      assert.equal(await engine.countPromptTokens(task, AbortSignal.timeout(5_000)), 5);
    }
    assert.deepEqual(paths, ['/tokenize', '/a/proxy/tokenize', '/a/proxy/tokenize']);
  });

  test('a completion without a limit runs to its end, even on servers with a default limit', async (t) => {
    const bodies: Record<string, unknown>[] = [];
    let hasTokenize = true;
    const server = createServer(async (request, response) => {
      const body = JSON.parse(Buffer.concat(await request.toArray()).toString());
      const isCount = request.url === '/tokenize';
      response.statusCode = isCount && !hasTokenize ? 404 : 200;
      response.setHeader('content-type', 'application/json');
      if (!isCount) bodies.push(body);
      const choices = [{ index: 0, text: 'x', finish_reason: 'stop' }];
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      const count = String(body.prompt).length;
      response.end(JSON.stringify(isCount ? { count, max_model_len: 100 } : { choices, usage }));
    });
    const port = await listen(t, server);
    const limitOf = async (name: UpstreamOptions['server'], task: Task) => {
      const options = upstreamOptions(`http://127.0.0.1:${port}/v1`, { server: name });
      const engine = createUpstreamEngine(options);
      await engine.respond(task, newCall());
      await engine.close();
      return bodies.pop()?.max_tokens;
    };
    const text = completion({ prompt: ['one', 'three'] });
    assert.equal(await limitOf('vllm', text), 95);
    assert.equal(await limitOf('sglang', text), 94);
    const cut = completion({ prompt: 'x'.repeat(100) });
    Object.assign(cut.body, { truncate_prompt_tokens: 20 });
    assert.equal(await limitOf('vllm', cut), 80);
    assert.equal(await limitOf('sglang', completion({ prompt: [[1, 2, 3], [4]] })), 96);
    for (const name of ['vllm', 'sglang'] as const)
      assert.equal(await limitOf(name, completion({ prompt: 'one', max_tokens: 7 })), 7);
    assert.equal(await limitOf('sglang', completion({ prompt: 'x'.repeat(100) })), undefined);
    for (const name of ['llama-server', 'ollama', 'openai'] as const)
      assert.equal(await limitOf(name, text), undefined);
    hasTokenize = false;
    for (const name of ['vllm', 'sglang'] as const)
      assert.equal(await limitOf(name, text), undefined);
  });

  test('returns plain responses with the members that the contract promises', async (t) => {
    const { engine } = await createPair(t, { words: 3 });
    const answer = await engine.respond(chat('Hi'), newCall());
    assert.deepEqual(answer.choices, [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'The wheel türnt',
          tool_calls: null,
          function_call: null,
          refusal: null,
        },
        logprobs: null,
        finish_reason: 'stop',
      },
    ]);
    assert.equal(answer.usage.completion_tokens, 3);
  });

  test('an invalid plain response is the server’s failure, but an empty finish reason is not', async () => {
    const scored = completion({ prompt: 'a', logprobs: 1 });
    const read = (task: Task, choice: unknown) => {
      const text = JSON.stringify({ choices: [choice], usage: { completion_tokens: 1 } });
      return parseResponse(
        task,
        { headers: {}, text, size: text.length },
        { server: 'vllm', check: newTrust() },
      );
    };
    const whole = { index: 0, finish_reason: 'stop' };
    for (const message of ['hi', 5, [1]])
      await assert.rejects(read(chat('Hi'), { ...whole, message }), { failure: 'unavailable' });
    for (const logprobs of [{ content: [null] }, { content: 5, tokens: [null], text_offset: [-1] }])
      await assert.rejects(read(scored, { ...whole, text: 'a', logprobs }), {
        failure: 'unavailable',
      });
    const empty = { index: 0, message: { content: 'Hi' }, finish_reason: '' };
    const { choices } = await read(chat('Hi'), empty);
    assert.equal(choices[0]?.finish_reason, 'stop');
  });

  test('a stream that is cut off before its second choice is incomplete', async (t) => {
    const choice = { index: 0, delta: { content: 'Hi' }, logprobs: null, finish_reason: 'stop' };
    const server = createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(`data: ${JSON.stringify({ choices: [choice] })}\n\n`);
      setTimeout(() => response.destroy(), 50);
    });
    const engine = createUpstreamEngine(
      upstreamOptions(`http://127.0.0.1:${await listen(t, server)}/v1`),
    );
    t.after(() => engine.close());
    await assert.rejects(readAll(engine, chat({ messages: [], n: 2 })), { failure: 'unavailable' });
    await readAll(engine, chat({ messages: [] }));
  });

  test('reads streams in pieces of any size, down to single bytes', async (t) => {
    const { engine } = await createPair(t, { words: 12, pieceBytes: 1 });
    const chunks = await readStream(await engine.stream(chat('Hi'), newCall()));
    const text = chunks.map(({ choices: [choice] }) =>
      choice !== undefined && 'delta' in choice ? choice.delta.content : '',
    );
    assert.equal(text.join(''), 'The wheel türnt 水 and the 👩‍🔧 mill grinds.The wheel');
  });

  /** What each misbehaviour is to the caller: of a stream, and of a plain request. */
  const outcomes: [Behaviour, object, object?][] = [
    ['dies-at-once', { failure: 'unavailable', code: null }],
    ['dies-before-first-chunk', { failure: 'unavailable', code: null }],
    ['dies-after-first-chunk', { failure: 'unavailable', code: null }],
    ['half-a-chunk', { failure: 'unavailable', code: null }],
    ['ends-early', { failure: 'unavailable', message: /finish reason/ }],
    ['too-many-requests', { failure: 'overloaded', retryAfterMs: 2000 }],
    ['html-error', { failure: 'unavailable', message: /status 500/ }],
    ['unauthorized', { failure: 'unavailable', message: /credentials/ }],
    ['wrong-content-type', { failure: 'unavailable', message: /text\/html/ }],
    ['endless-headers', { failure: 'unavailable', message: /headers/ }],
    ['fails-in-stream', { failure: 'unavailable' }],
    ['too-large', { failure: 'unavailable', message: /too large/ }],
    ['slow-headers', { failure: 'unavailable', code: 'upstream_timeout' }],
    ['goes-silent', { failure: 'unavailable', code: 'upstream_timeout' }],
    ['only-pings', { failure: 'unavailable', code: 'upstream_timeout' }, {}],
  ];
  const short = { connectMs: 500, firstByteMs: 300, idleMs: 300 };
  for (const [behaviour, streamed, plain = streamed] of outcomes)
    test(`an upstream that ${behaviour} fails the request and nothing else`, async (t) => {
      const isTimed = 'code' in streamed && streamed.code === 'upstream_timeout';
      const overrides = isTimed ? { timeouts: short } : {};
      const { upstream, engine } = await createPair(t, { behaviour }, overrides);
      await assert.rejects(readAll(engine), streamed);
      if (Object.keys(plain).length > 0)
        await assert.rejects(engine.respond(chat('Hi'), newCall()), plain);
      upstream.behave('answers');
      assert.match(await readAll(engine), /finish_reason":"stop"/);
    });

  test('a server that is too slow gives a 504, and an unreachable one a 502', async (t) => {
    const { upstream, engine } = await createPair(t, {}, { timeouts: short });
    upstream.behave('slow-headers');
    const slow = await engine.respond(chat('Hi'), newCall()).catch((error: unknown) => error);
    assert.equal(toInferenceError(slow, 'm')?.status, 504);
    await upstream.close();
    const none = await engine.respond(chat('Hi'), newCall()).catch((error: unknown) => error);
    assert.equal(toInferenceError(none, 'm')?.status, 502);
  });

  for (const behaviour of ['dies-after-first-chunk', 'half-a-chunk', 'fails-in-stream'] as const)
    test(`what came before a stream that ${behaviour} is passed on and counted`, async (t) => {
      const { engine } = await createPair(t, { behaviour });
      const reported: Usage[] = [];
      const call = newCall({ onUsage: (soFar) => reported.push(soFar) });
      const blocks: string[] = [];
      await assert.rejects(async () => {
        for await (const block of await engine.stream(chat('Hi'), call)) blocks.push(String(block));
      });
      assert.match(blocks.join(''), /"content":"The"/);
      assert.deepEqual(reported.at(-1), {
        prompt_tokens: 0,
        completion_tokens: 1,
        total_tokens: 1,
        prompt_tokens_details: null,
      });
    });

  for (const behaviour of ['slow-headers', 'only-pings', 'never-ends', 'goes-silent'] as const)
    test(`a client that leaves ends the work of an upstream that ${behaviour}`, async (t) => {
      const { upstream, engine } = await createPair(t, { behaviour });
      for (const streams of [true, false]) {
        const leaving = new AbortController();
        const call = newCall({ signal: leaving.signal });
        const answer = streams
          ? readAll(engine, chat('Hi'), call)
          : engine.respond(chat('Hi'), call);
        const seen = upstream.requests.length;
        await until('it asks', () => upstream.requests.length > seen);
        leaving.abort(reason);
        await assert.rejects(answer, reason);
        await until('its socket closes', () => upstream.requests.at(-1)?.state === 'left');
      }
    });

  test('a client that leaves between chunks is billed for what was generated', async (t) => {
    const { upstream, engine } = await createPair(t, { words: 500, eventDelayMs: 2 });
    const leaving = new AbortController();
    let tokens = 0;
    const onUsage = (soFar: Usage) => {
      tokens = soFar.completion_tokens;
    };
    const call = newCall({ signal: leaving.signal, onUsage });
    let blocks = 0;
    await assert.rejects(async () => {
      for await (const _ of await engine.stream(chat('Hi'), call))
        if (++blocks === 20) leaving.abort(reason);
    }, reason);
    assert.ok(tokens >= 15 && tokens < 100, String(tokens));
    await until('its socket closes', () => upstream.requests[0]?.state === 'left');
  });

  test('a stream ends at its last event, and a server that sends more is cut off', async (t) => {
    const script = { behaviour: 'talks-after-the-end', words: 5 } as const;
    const { upstream, engine } = await createPair(t, script, { timeouts: short });
    const text = await readAll(engine);
    assert.equal(text.split('\n\n').length - 1, 7);
    await until('its socket closes', () => upstream.requests[0]?.state === 'left');
  });

  test('a reader that stops reading ends the request', async (t) => {
    const { upstream, engine } = await createPair(t, { behaviour: 'never-ends' });
    for await (const _ of await engine.stream(chat('Hi'), newCall())) break;
    await until('its socket closes', () => upstream.requests[0]?.state === 'left');
  });

  test('a slow reader applies backpressure to the server and loses nothing', async (t) => {
    const { upstream, engine } = await createPair(t, { words: 40_000 });
    const stream = await engine.stream(chat('Hi'), newCall());
    const reader = stream[Symbol.asyncIterator]();
    const first = String((await reader.next()).value);
    // Far more is waiting than may be held here; time for a reader that held it all to show.
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.equal(upstream.requests[0]?.state, 'running');
    let length = first.length;
    let longest = first.length;
    let last = first;
    for (let next = await reader.next(); !next.done; next = await reader.next()) {
      last = String(next.value);
      length += last.length;
      longest = Math.max(longest, last.length);
    }
    assert.ok(length > 8_000_000 && longest < 2_000_000, `${length} ${longest}`);
    assert.match(last, /finish_reason":"stop"/);
  });

  test('closing fails running requests', async (t) => {
    const { upstream, engine } = await createPair(t, { behaviour: 'slow-headers' });
    const answer = engine.respond(chat('Hi'), newCall());
    const failed = assert.rejects(answer, { failure: 'unavailable' });
    await until('it asks', () => upstream.requests.length === 1);
    await engine.close();
    await failed;
  });

  test('counts prompts on the server if it can count', async (t) => {
    const { upstream, engine } = await createPair(t);
    const { signal } = new AbortController();
    const words = chat('one two three');
    assert.equal(await engine.countPromptTokens(words, signal), 6);
    const texts = completion({ prompt: ['one', 'one two three'] });
    assert.equal(await engine.countPromptTokens(texts, signal), 3);
    for (const [server, task, expected] of [
      ['llama-server', words, 6],
      ['sglang', completion({ prompt: 'one two' }), 2],
      ['openai', completion({ prompt: [[1, 2, 3], [4]] }), 3],
    ] as const) {
      const other = createUpstreamEngine(upstreamOptions(upstream.url, { server }));
      t.after(() => other.close());
      assert.equal(await other.countPromptTokens(task, signal), expected);
    }
    const unable = createUpstreamEngine(upstreamOptions(upstream.url, { server: 'ollama' }));
    t.after(() => unable.close());
    assert.equal(await unable.countPromptTokens(words, signal), null);
  });

  test('counts a chat as the template renders it, with the template’s arguments', async (t) => {
    const bodies: unknown[] = [];
    const server = createServer(async (request, response) => {
      bodies.push(JSON.parse(Buffer.concat(await request.toArray()).toString()));
      response.setHeader('content-type', 'application/json').end('{"count":7}');
    });
    const port = await listen(t, server);
    const { messages } = chat('Hi').body as { messages: unknown };
    const shared = {
      chat_template_kwargs: { enable_thinking: false },
      continue_final_message: true,
    };
    const own = {
      vllm: { add_generation_prompt: false },
      // It would count something else, or refuse, if it were sent vLLM's members.
      sglang: { tool_choice: 'auto', reasoning_effort: 'low' },
    };
    const body = { model: 'm', messages, temperature: 0, ...shared, ...own.vllm, ...own.sglang };
    for (const name of ['vllm', 'sglang'] as const) {
      const options = upstreamOptions(`http://127.0.0.1:${port}/v1`, { server: name });
      const engine = createUpstreamEngine(options);
      t.after(() => engine.close());
      const task = { kind: 'chat', body } as Task;
      assert.equal(await engine.countPromptTokens(task, new AbortController().signal), 7);
      assert.deepEqual(bodies.pop(), { model: 'scripted', messages, ...shared, ...own[name] });
    }
  });

  test('an SGLang that warms up or shuts down is not ready, whatever else it responds', async (t) => {
    let status = 200;
    const server = createServer(({ url }, response) => {
      response.statusCode = url === '/ready' ? status : 200;
      response.setHeader('content-type', 'application/json').end('{"data":[{"id":"scripted"}]}');
    });
    const port = await listen(t, server);
    const { signal } = new AbortController();
    const probe = (name: 'sglang' | 'vllm') =>
      probeUpstream(upstreamOptions(`http://127.0.0.1:${port}/v1`, { server: name }), signal);
    assert.deepEqual((await probe('sglang')).models, ['scripted']);
    status = 503;
    await assert.rejects(probe('sglang'), { failure: 'unavailable', message: /is not ready/ });
    await probe('vllm');
    // As older ones say.
    status = 404;
    await probe('sglang');
  });

  test('reports SGLang’s matched stop string as other servers do', async (t) => {
    const matched: unknown[] = ['ain', 835, 3, null];
    let stop: unknown = null;
    const server = createServer(async (request, response) => {
      const { stream } = JSON.parse(Buffer.concat(await request.toArray()).toString());
      const choice = {
        index: 0,
        text: 'x',
        logprobs: null,
        finish_reason: 'stop',
        matched_stop: stop,
      };
      const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
      const answer = JSON.stringify({
        id: 'a',
        object: 'text_completion',
        choices: [choice],
        usage,
      });
      response.setHeader('content-type', stream ? 'text/event-stream' : 'application/json');
      response.end(stream ? `data: ${answer}\n\ndata: [DONE]\n\n` : answer);
    });
    const port = await listen(t, server);
    const options = upstreamOptions(`http://127.0.0.1:${port}/v1`, { server: 'sglang' });
    const engine = createUpstreamEngine(options);
    t.after(() => engine.close());
    const task = completion({ prompt: 'one', stop_token_ids: [835] });
    const reported = [];
    for (stop of matched) {
      const { choices } = await engine.respond(task, newCall());
      const [chunk] = await readStream(await engine.stream(task, newCall()));
      reported.push(
        [choices[0], chunk?.choices[0]].map((one) => (one as CompletionChoice).stop_reason),
      );
    }
    // 3 is the end of its model's text, which the request did not name.
    assert.deepEqual(reported, [
      ['ain', 'ain'],
      [835, 835],
      [null, null],
      [null, null],
    ]);
  });

  test('a probe doubts a server only if its list of models fails with 500', async (t) => {
    let status = 500;
    const server = createServer((_request, response) => {
      response.statusCode = status;
      response.end('{}');
    });
    const port = await listen(t, server);
    const { signal } = new AbortController();
    const probe = () => probeUpstream(upstreamOptions(`http://127.0.0.1:${port}/v1`), signal);
    await assert.rejects(probe(), { failure: 'unavailable', isDoubtful: true });
    // A proxy whose server is down.
    status = 502;
    await assert.rejects(probe(), { failure: 'unavailable', isDoubtful: false });
  });

  test('a probe reports the models, the context window and its duration', async (t) => {
    const { upstream } = await createPair(t, { apiKey: 'k' });
    const { signal } = new AbortController();
    const options = upstreamOptions(upstream.url, { apiKey: 'k' });
    const { latencyMs, ...report } = await probeUpstream(options, signal);
    assert.deepEqual(report, { models: ['scripted'], contextWindow: 8192 });
    assert.ok(latencyMs >= 0);
    const wrongKey = upstreamOptions(upstream.url, { apiKey: 'other' });
    await assert.rejects(probeUpstream(wrongKey, signal), /credentials/);
    upstream.behave('slow-headers');
    const hasty = upstreamOptions(upstream.url, { apiKey: 'k', timeouts: short });
    await assert.rejects(probeUpstream(hasty, signal), { code: 'upstream_timeout' });
  });
});
