// Ollama's API over HTTP, by Ollama's own client: chats, generations, tools, thoughts, lists and errors.

import assert from 'node:assert';
import { before, describe, test } from 'node:test';
import { type Message, Ollama } from 'ollama';
import { type SayingUpstream, startSayingUpstream } from '#test/support/saying-upstream.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

describe('Ollama’s API', () => {
  let server: TestServer;
  let upstream: SayingUpstream;
  let ollama: Ollama;
  before(async () => {
    upstream = await startSayingUpstream();
    server = await startTestServer({
      config: {
        models: {
          catalog: {
            said: { backends: [{ name: 'said', url: upstream.url }] },
            vectors: { kind: 'embedding' },
          },
        },
      },
    });
    const headers = { authorization: `Bearer ${server.key}` };
    ollama = new Ollama({ host: server.url, headers });
  });

  const ask = (content: string): Message[] => [{ role: 'user', content }];
  const weather = {
    type: 'function',
    function: { name: 'weather', description: 'The weather', parameters: { type: 'object' } },
  };

  test('the built-in model answers a chat, whole and as lines', async () => {
    const model = 'llama3.1-8b-instruct:latest';
    const messages = ask('What is the capital of France?');
    const options = { temperature: 0 };
    const whole = await ollama.chat({ model, messages, options });
    assert.equal(whole.message.content, 'The capital of France is Paris.');
    assert.deepEqual([whole.done, whole.done_reason], [true, 'stop']);
    assert(whole.prompt_eval_count > 0 && whole.eval_count > 0 && whole.total_duration > 0);
    const parts = await Array.fromAsync(
      await ollama.chat({ model, messages, options, stream: true }),
    );
    assert.equal(parts.map(({ message }) => message.content).join(''), whole.message.content);
    assert.deepEqual(
      parts.map(({ done }) => done),
      parts.map((_, index) => index === parts.length - 1),
    );
    assert.equal(parts.at(-1)?.eval_count, whole.eval_count);
  });

  test('a prompt is answered, a raw one continued, and an empty one loads the model', async () => {
    const model = 'llama3.1-8b-instruct';
    const options = { temperature: 0, num_predict: 5 };
    const prompt = 'What is the capital of France?';
    const answer = await ollama.generate({ model, prompt, options });
    assert.equal(answer.response, 'The capital of France is');
    assert.equal(answer.done_reason, 'length');
    const raw = await ollama.generate({ model, prompt: 'Once upon a', raw: true, options });
    assert.match(raw.response ?? '', /^ time/);
    const loaded = await ollama.generate({ model, prompt: '' });
    assert.deepEqual([loaded.response, loaded.done_reason], ['', 'load']);
  });

  test('calls, thoughts and images reach both sides in Ollama’s form', async () => {
    const call = (index: number, text: string, name?: string) => ({
      tool_calls: [
        {
          index,
          ...(name && { id: `call_${index}`, type: 'function' }),
          function: { name, arguments: text },
        },
      ],
    });
    upstream.say(
      { reasoning_content: 'Let me ' },
      { reasoning_content: 'look.' },
      call(0, '{"in":', 'weather'),
      call(0, '"Oslo"}'),
      call(1, '{}', 'weather'),
    );
    const messages = [{ role: 'user', content: 'Rain?', images: ['/9j/4AAQSkZJRg=='] }];
    const stream = await ollama.chat({ model: 'said', messages, tools: [weather], stream: true });
    const parts = await Array.fromAsync(stream);
    assert.equal(parts.map(({ message }) => message.thinking ?? '').join(''), 'Let me look.');
    const calls = parts.flatMap(({ message }) => message.tool_calls ?? []);
    assert.deepEqual(
      calls.map(({ function: { name, arguments: given } }) => [name, given]),
      [
        ['weather', { in: 'Oslo' }],
        ['weather', {}],
      ],
    );
    const [sent] = upstream.requests.at(-1)?.messages ?? [];
    assert.deepEqual(sent?.content, [
      { type: 'text', text: 'Rain?' },
      { type: 'image_url', image_url: { url: 'data:image/jpeg;base64,/9j/4AAQSkZJRg==' } },
    ]);

    upstream.say('It rains.');
    const played = [
      ...ask('Rain?'),
      { role: 'assistant', content: '', tool_calls: calls },
      { role: 'tool', content: 'rain', tool_name: 'weather' },
      { role: 'tool', content: 'sun', tool_name: 'weather' },
    ];
    const answer = await ollama.chat({ model: 'said', messages: played, stream: true });
    assert.equal(
      (await Array.fromAsync(answer)).map((it) => it.message.content).join(''),
      'It rains.',
    );
    const results = upstream.requests.at(-1)?.messages.slice(1) as unknown as {
      tool_calls?: { id: string }[];
      tool_call_id?: string;
    }[];
    assert.deepEqual(
      results.slice(1).map((it) => it.tool_call_id),
      results[0]?.tool_calls?.map(({ id }) => id),
    );
  });

  test('think turns thoughts off or says how much effort to make', async () => {
    const sent: unknown[] = [];
    for (const think of [false, true, 'low']) {
      upstream.say('Yes.');
      const response = await server.fetch('/api/chat', {
        json: { model: 'said', messages: ask('Rain?'), think, stream: false },
      });
      assert.equal(response.status, 200);
      const { chat_template_kwargs, reasoning_effort } = upstream.requests.at(-1) as object as {
        chat_template_kwargs?: object;
        reasoning_effort?: string;
      };
      sent.push(chat_template_kwargs ?? reasoning_effort);
    }
    assert.deepEqual(sent, [{ enable_thinking: false }, undefined, 'low']);
    const wrong = { model: 'said', messages: ask('Rain?'), think: 'a lot' };
    assert.equal((await server.fetch('/api/chat', { json: wrong })).status, 400);
  });

  test('a call whose name comes late is sent, and arguments are always an object', async () => {
    upstream.say(
      { tool_calls: [{ index: 0, id: 'call_0', function: { arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { name: 'weather', arguments: '["Oslo"]' } }] },
    );
    const messages = ask('Rain?');
    const stream = await ollama.chat({ model: 'said', messages, tools: [weather], stream: true });
    const parts = await Array.fromAsync(stream);
    const calls = parts.flatMap(({ message }) => message.tool_calls ?? []);
    assert.deepEqual(
      calls.map(({ function: { name, arguments: given } }) => [name, given]),
      [['weather', { invalid_arguments: '["Oslo"]' }]],
    );
  });

  test('what a schema can’t express is refused before a backend sees it', async () => {
    const seen = upstream.requests.length;
    const stop = [''];
    const chat = ollama.chat({ model: 'said', messages: ask('Hi'), options: { stop } });
    await assert.rejects(chat, /A stop string must have at least one character/);
    const raw = ollama.generate({ model: 'said', prompt: 'Hi', raw: true, options: { stop } });
    await assert.rejects(raw, /A stop string must have at least one character/);
    const tools = [weather, weather];
    const twice = ollama.chat({ model: 'said', messages: ask('Hi'), tools });
    await assert.rejects(twice, /Two tools have the same name/);
    assert.equal(upstream.requests.length, seen);
  });

  test('a format is enforced', async () => {
    const format = { type: 'object', properties: { city: { enum: ['Oslo'] } }, required: ['city'] };
    const { message } = await ollama.chat({
      model: 'llama3.1-8b-instruct',
      messages: ask('Where?'),
      format,
      options: { temperature: 0, num_predict: 100 },
    });
    assert.deepEqual(JSON.parse(message.content), { city: 'Oslo' });
  });

  test('lists and describes models', async () => {
    const { models } = await ollama.list();
    const [first] = models;
    assert(first !== undefined && models.some(({ name }) => name === 'said'));
    assert.match(first.digest, /^[0-9a-f]{64}$/);
    assert.equal((await ollama.list()).models[0]?.digest, first.digest);
    const ready = await ollama.ps();
    assert.deepEqual(
      ready.models.map(({ name }) => name),
      ['said'],
    );
    const shown = await ollama.show({ model: 'said:latest' });
    assert.deepEqual(shown.capabilities, ['completion', 'tools']);
    assert.deepEqual((await ollama.show({ model: 'vectors' })).capabilities, ['embedding']);
    assert.match((await ollama.version()).version, /^\d+\.\d+\.\d+$/);
    const root = await fetch(server.url, { headers: { accept: '*/*' } });
    assert.equal(await root.text(), 'Ollama is running');
  });

  test('errors are a message, and a row says what happened', async () => {
    const post = (path: string, body: string) =>
      fetch(`${server.url}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${server.key}` },
        body,
      });
    const missing = await post(
      '/api/chat',
      '{"model":"none","messages":[{"role":"user","content":"a"}]}',
    );
    assert.equal(missing.status, 404);
    assert.match(((await missing.json()) as { error: string }).error, /"none" does not exist/);
    const invalid = await post('/api/generate', '{"model":7}');
    assert.equal(invalid.status, 400);
    assert.equal(typeof ((await invalid.json()) as { error: unknown }).error, 'string');
    assert.equal((await post('/api/pull', '{}')).status, 404);
    assert.equal((await fetch(`${server.url}/api/tags`)).status, 401);
    const owner = await server.join();
    await until('the refused row is written', async () => {
      const response = await owner('/dashboard/api/usage/requests?limit=50');
      const text = await response.text();
      return text.includes('ollama_chat') && text.includes('model_not_found');
    });
  });
});
