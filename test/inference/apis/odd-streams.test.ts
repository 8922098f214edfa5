// Any stream that an upstream may send becomes a valid stream of each API, with exactly the text, the thoughts and the
// calls that were sent.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import fc from 'fast-check';
import { Ollama } from 'ollama';
import OpenAI from 'openai';
import { createMessagesFormat } from '#inference/apis/messages/format.ts';
import { chatShape, createOllamaFormat, generateShape } from '#inference/apis/ollama/format.ts';
import { toOpenAiFormat } from '#inference/apis/openai-format.ts';
import { createResponsesFormat } from '#inference/apis/responses/format.ts';
import { createToolSet } from '#inference/apis/responses/request/tools.ts';
import { toArguments } from '#inference/choice-output.ts';
import type { Envelope, Task } from '#inference/engine.ts';
import { EventRewriter } from '#inference/engines/upstream/stream/event-rewriter.ts';
import { EventTemplates } from '#inference/engines/upstream/stream/event-template.ts';
import { createTokenCounts } from '#inference/engines/upstream/usage.ts';
import type { ResponseFormat } from '#inference/serving/response-format.ts';
import type { Usage } from '#inference/wire/response.ts';
import { fromBytes, toBytes } from '#lib/memory/byte-string.ts';
import { readChat } from '#test/support/chat-events.ts';
import { createHandClock } from '#test/support/clock.ts';
import { newCall } from '#test/support/engine-call.ts';
import { readMessage } from '#test/support/messages-events.ts';
import { type OddStream, oddStream, type SaidCall } from '#test/support/odd-streams.ts';
import { readLines } from '#test/support/ollama-lines.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';
import { checkResponseEvents, parseResponseEvents, textOf } from '#test/support/response-events.ts';
import { startSayingUpstream } from '#test/support/saying-upstream.ts';
import { startTestServer } from '#test/support/server.ts';
import { newTrust } from '#test/support/upstream.ts';

const tools = Array.from({ length: 4 }, (_, number) => ({
  type: 'function' as const,
  name: `tool_${number}`,
}));
const task: Task = {
  kind: 'chat',
  body: {
    model: 'm',
    messages: [{ role: 'user', content: 'Go' }],
    tools: tools.map(({ type, name }) => ({ type, function: { name } })),
    stream: true,
    stream_options: { include_usage: true },
  },
};
const usage: Usage = {
  prompt_tokens: 7,
  completion_tokens: 5,
  total_tokens: 12,
  prompt_tokens_details: null,
};

/** The events of an API for a stream of an upstream. */
async function translate(
  { sent, packetBytes }: Pick<OddStream, 'sent' | 'packetBytes'>,
  format: ResponseFormat,
  templates: EventTemplates,
  asked: Task = task,
): Promise<string> {
  const envelope: Envelope = {
    requestId: '0123',
    id: 'chat-0123',
    created: 1,
    model: 'mill',
    kind: asked.kind,
  };
  const counting = { generated: createTokenCounts(undefined)(), check: newTrust() };
  const rewriter = new EventRewriter(asked, newCall({ envelope }), counting, templates);
  const stream = format.openStream(envelope);
  let written = stream.begin(usage);
  const bytes = toBytes(sent);
  for (let at = 0; at < bytes.length; at += packetBytes) {
    const events = rewriter.push(bytes.slice(at, at + packetBytes));
    if (events !== '') written += stream.take(events);
  }
  const rest = rewriter.end();
  if (rest !== '') written += stream.take(rest);
  assert.equal(rewriter.failure, null);
  assert(rewriter.hasFinished());
  return fromBytes(written + (await stream.end(usage)));
}

/** Twice: the second stream is rewritten by what was learned from the first. */
function check(
  format: () => ResponseFormat,
  verify: (written: string, stream: OddStream) => void,
): Promise<void> {
  const property = fc.asyncProperty(oddStream, async (stream) => {
    const templates = new EventTemplates();
    verify(await translate(stream, format(), templates), stream);
    verify(await translate(stream, format(), templates), stream);
  });
  return fc.assert(property, { seed: propertySeed, numRuns: propertyRuns(250) }) as Promise<void>;
}

/** An id that a server left out is ours to choose. */
function assertCalls(
  sent: readonly SaidCall[],
  said: readonly SaidCall[],
  makesIds: boolean,
): void {
  const ids = sent.map(({ id }) => id);
  if (makesIds) assert.equal(new Set(ids).size, said.length);
  const expected = said.map((call, at) =>
    makesIds && call.id === '' ? { ...call, id: ids[at] as string } : call,
  );
  assert.deepEqual(sent, expected);
}

test('chat completions', () =>
  check(
    () => toOpenAiFormat(task),
    (written, { text, thoughts, calls, finish }) => {
      const read = readChat(written, true);
      assert.deepEqual([read.text, read.thoughts, read.finish], [text, thoughts, finish]);
      assertCalls(read.calls, calls, false);
      assert.deepEqual(read.usage, usage);
    },
  ));

test('messages', () => {
  const request = { model: 'm', max_tokens: 100, messages: [] };
  return check(
    () => createMessagesFormat(request),
    (written, { text, thoughts, calls }) => {
      const { blocks } = readMessage(written);
      const joined = (kind: string) =>
        blocks.map((block) => (block.type === kind ? block.text : '')).join('');
      assert.deepEqual([joined('text'), joined('thinking')], [text, thoughts]);
      const used = blocks.filter(({ type }) => type === 'tool_use');
      assertCalls(
        used.map(({ id = '', name = '', text: args }) => ({ id, name, arguments: args })),
        calls,
        true,
      );
    },
  );
});

test('responses', () =>
  check(
    () =>
      createResponsesFormat({
        request: { model: 'm', tools, store: false },
        id: 'resp_0123',
        tools: createToolSet(tools),
        clock: createHandClock(1_763_000_001_500),
        seal: (text) => text,
      }),
    (written, { text, thoughts, calls, finish }) => {
      const bytes = Buffer.from(written).toString('latin1');
      const { output, status } = checkResponseEvents(parseResponseEvents(bytes));
      const isCut = finish === 'length' || finish === 'content_filter';
      assert.equal(status, isCut ? 'incomplete' : 'completed');
      const joined = (type: string) =>
        output.map((item) => (item.type === type ? textOf(item) : '')).join('');
      assert.deepEqual([joined('message'), joined('reasoning')], [text, thoughts]);
      const called = output.flatMap((item) => (item.type === 'function_call' ? [item] : []));
      // Clients parse the arguments of a complete call as JSON.
      const expected = calls.map((call, at) =>
        call.arguments === '' && called[at]?.status === 'completed'
          ? { ...call, arguments: '{}' }
          : call,
      );
      assertCalls(
        called.map(({ call_id, name, arguments: args }) => ({
          id: call_id,
          name,
          arguments: args,
        })),
        expected,
        true,
      );
    },
  ));

test('Ollama’s chat', () =>
  check(
    () => createOllamaFormat(chatShape),
    (written, { text, thoughts, calls, finish }) => {
      assert.deepEqual(readLines(written), {
        text,
        thoughts,
        calls: calls.map(({ name, arguments: args }) => ({ name, arguments: toArguments(args) })),
        reason: finish === 'length' ? 'length' : 'stop',
      });
    },
  ));

test('Ollama’s generate', () =>
  check(
    () => createOllamaFormat(generateShape),
    (written, { text, thoughts }) => {
      const read = readLines(written);
      assert.deepEqual([read.text, read.thoughts, read.calls], [text, thoughts, []]);
    },
  ));

test('text completions', async () => {
  const asked: Task = { kind: 'completion', body: { model: 'm', prompt: 'Go', stream: true } };
  const odd = ['', ': hm\n\n', 'data: null\n\n', 'data: {"choices":[],"usage":{}}\n\n'];
  const property = fc.asyncProperty(
    fc.array(fc.tuple(fc.string({ unit: 'binary', maxLength: 8 }), fc.constantFrom(...odd)), {
      maxLength: 12,
    }),
    fc.boolean(),
    fc.integer({ min: 1, max: 200 }),
    async (said, isLastTold, packetBytes) => {
      const toEvent = (text: unknown, finish_reason: string | null) =>
        `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, text, finish_reason }] })}\n\n`;
      const texts = said.map(([text, filler]) => filler + toEvent(text.toWellFormed(), null));
      const end = [toEvent(isLastTold ? '' : null, 'stop'), toEvent('too late', 'length')];
      const sent = [...texts, ...end, 'data: [DONE]\n\n'].join('');
      const written = await translate(
        { sent, packetBytes },
        toOpenAiFormat(asked),
        new EventTemplates(),
        asked,
      );
      const { text, finish } = readChat(written, false);
      assert.deepEqual([text, finish], [said.map(([one]) => one.toWellFormed()).join(''), 'stop']);
    },
  );
  await fc.assert(property, { seed: propertySeed, numRuns: propertyRuns(200) });
});

test('calls that a server does not number are told apart by every official client', async (t) => {
  const upstream = await startSayingUpstream();
  const backends = [{ name: 'said', url: upstream.url }];
  const server = await startTestServer({ config: { models: { catalog: { said: { backends } } } } });
  t.after(() => server.stop());
  const toPiece = (id: string, name: string | undefined, args: string) => ({
    tool_calls: [
      { ...(id !== '' && { id }), function: { ...(name && { name }), arguments: args } },
    ],
  });
  // It names no role either.
  upstream.say(
    toPiece('call_a', 'tool_0', '{"a":'),
    toPiece('', undefined, '1}'),
    toPiece('call_b', 'tool_1', ''),
    { reasoning: 'Now the third.' },
    toPiece('call_c', 'tool_1', '{}'),
  );
  const expected = [
    ['tool_0', { a: 1 }],
    ['tool_1', {}],
    ['tool_1', {}],
  ];
  const parse = (args: string) => JSON.parse(args || '{}') as object;
  const model = 'said';
  const messages = [{ role: 'user' as const, content: 'Go' }];
  const openai = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: server.key });

  const functions = tools.map(({ type, name }) => ({ type, function: { name } }));
  const chat = await openai.chat.completions
    .stream({ model, messages, tools: functions })
    .finalMessage();
  const chatCalls = (chat.tool_calls ?? []).flatMap((call) => ('function' in call ? [call] : []));
  assert.deepEqual(
    chatCalls.map(({ function: { name, arguments: args } }) => [name, parse(args)]),
    expected,
  );

  const strict = tools.map((tool) => ({ ...tool, parameters: null, strict: false }));
  const { output } = await openai.responses
    .stream({ model, input: 'Go', tools: strict })
    .finalResponse();
  const called = output.flatMap((item) => (item.type === 'function_call' ? [item] : []));
  assert.deepEqual(
    called.map(({ name, arguments: args }) => [name, parse(args)]),
    expected,
  );

  const anthropic = new Anthropic({ baseURL: server.url, apiKey: server.key });
  const input_schema = { type: 'object' as const };
  const { content } = await anthropic.messages
    .stream({
      model,
      messages,
      max_tokens: 100,
      tools: tools.map(({ name }) => ({ name, input_schema })),
    })
    .finalMessage();
  const used = content.flatMap((block) => (block.type === 'tool_use' ? [block] : []));
  assert.deepEqual(
    used.map(({ name, input }) => [name, input]),
    expected,
  );

  const ollama = new Ollama({
    host: server.url,
    headers: { authorization: `Bearer ${server.key}` },
  });
  const lines = await Array.fromAsync(
    await ollama.chat({ model, messages, tools: functions as never, stream: true }),
  );
  const sent = lines.flatMap(({ message }) => message.tool_calls ?? []);
  assert.deepEqual(
    sent.map(({ function: { name, arguments: args } }) => [name, args]),
    expected,
  );
});
