// Other people's clients against the real server and the real model: only the base address and the key
// are changed.

import assert from 'node:assert';
import { before, describe, test } from 'node:test';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateObject, generateText, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { zodResponseFormat } from 'openai/helpers/zod';
import { z } from 'zod';
import { assertShape } from '#test/support/openai-shapes.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const model = 'hermes3-8b';
const ask = [{ role: 'user' as const, content: 'What is the capital of France?' }];
const paris = 'The capital of France is Paris.';
const City = z.object({
  name: z.string().max(20),
  population: z.number().int().min(0).max(9_999_999),
});
const weather = {
  type: 'function' as const,
  function: {
    name: 'get_weather',
    description: 'Get the weather of a city.',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string', maxLength: 20 } },
      required: ['city'],
      additionalProperties: false,
    },
  },
};

let server: TestServer;
describe('clients of the API', () => {
  before(async () => {
    server = await startTestServer();
  });

  describe('the official openai package', () => {
    const client = () =>
      new OpenAI({ baseURL: `${server.url}/v1`, apiKey: server.key, maxRetries: 0 });

    test('plain and streamed responses', async () => {
      const plain = await client().chat.completions.create({
        model,
        messages: ask,
        temperature: 0,
      });
      assertShape('chat', plain);
      assert.equal(plain.choices[0]?.message.content, paris);
      const stream = await client().chat.completions.create({
        model,
        messages: ask,
        temperature: 0,
        stream: true,
        stream_options: { include_usage: true },
      });
      let text = '';
      let total = 0;
      for await (const chunk of stream) {
        assertShape('chatChunk', chunk);
        text += chunk.choices[0]?.delta.content ?? '';
        total = chunk.usage?.total_tokens ?? total;
      }
      assert.equal(text, paris);
      assert.equal(total, plain.usage?.total_tokens);
    });

    test('a body over the limit is reported as such, not as a broken pipe', async () => {
      const messages = [{ role: 'user' as const, content: 'a'.repeat(20_000_000) }];
      await assert.rejects(client().chat.completions.create({ model, messages }), {
        status: 413,
        code: 'request_too_large',
      });
    });

    test('completions', async () => {
      const answer = await client().completions.create({
        model,
        prompt: ['One', 'Two'],
        n: 2,
        max_tokens: 3,
      });
      assert.deepEqual(
        answer.choices.map(({ index }) => index),
        [0, 1, 2, 3],
      );
    });

    test('the streaming helper assembles tool calls', async () => {
      const runner = client().chat.completions.stream({
        model,
        messages: [{ role: 'user', content: 'What is the weather in Paris?' }],
        tools: [weather],
        tool_choice: 'required',
        temperature: 0,
      });
      const { choices } = await runner.finalChatCompletion();
      const call = choices[0]?.message.tool_calls?.[0];
      assert(call?.type === 'function' && call.function.name === 'get_weather');
      assert.equal(typeof JSON.parse(call.function.arguments).city, 'string');
      assert.equal(choices[0]?.finish_reason, 'tool_calls');
    });

    test('structured output by its zod helper', async () => {
      const answer = await client().chat.completions.parse({
        model,
        messages: [{ role: 'user', content: 'Tell me about Paris as JSON.' }],
        response_format: zodResponseFormat(City, 'city'),
        temperature: 0,
      });
      const parsed = answer.choices[0]?.message.parsed;
      assert(parsed && City.safeParse(parsed).success);
    });

    test('logprobs in the chat form', async () => {
      const answer = await client().chat.completions.create({
        model,
        messages: ask,
        temperature: 0,
        logprobs: true,
        top_logprobs: 3,
      });
      assertShape('chat', answer);
      const content = answer.choices[0]?.logprobs?.content ?? [];
      assert.equal(content.map(({ token }) => token).join(''), paris);
      for (const { top_logprobs } of content) assert.equal(top_logprobs.length, 3);
    });

    test('errors are its own classes', async () => {
      const wrong = { model: 'nope', messages: ask };
      await assert.rejects(client().chat.completions.create(wrong), OpenAI.NotFoundError);
      const hot = { model, messages: ask, temperature: 9 };
      await assert.rejects(client().chat.completions.create(hot), (error) => {
        assert(error instanceof OpenAI.BadRequestError);
        assert.deepEqual([error.code, error.param], ['decimal_above_max_value', 'temperature']);
        return true;
      });
    });

    test('an abort during a stream ends it', async () => {
      const stream = await client().chat.completions.create({ model, messages: ask, stream: true });
      let chunks = 0;
      for await (const _ of stream) {
        chunks++;
        if (chunks === 2) stream.controller.abort();
      }
      assert(chunks < 8);
    });
  });

  describe('the Vercel AI SDK', () => {
    const provider = () =>
      createOpenAICompatible({
        name: 'millrace',
        baseURL: `${server.url}/v1`,
        apiKey: server.key,
        supportsStructuredOutputs: true,
      })(model);

    test('generateText and streamText', async () => {
      const { text, usage } = await generateText({
        model: provider(),
        messages: ask,
        temperature: 0,
      });
      assert.equal(text, paris);
      assert((usage.outputTokens ?? 0) > 0);
      const result = streamText({ model: provider(), messages: ask, temperature: 0 });
      let streamed = '';
      for await (const part of result.textStream) streamed += part;
      assert.equal(streamed, paris);
    });

    test('generateObject', async () => {
      const { object } = await generateObject({
        model: provider(),
        schema: City,
        prompt: 'Paris as JSON',
        temperature: 0,
      });
      assert(City.safeParse(object).success);
    });

    test('a tool loop: the model calls, the tool runs, the model continues', async () => {
      const asked: string[] = [];
      const result = await generateText({
        model: provider(),
        prompt: 'What is the weather in Paris?',
        temperature: 0,
        toolChoice: 'auto',
        prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? 'required' : 'none' }),
        stopWhen: stepCountIs(2),
        tools: {
          get_weather: tool({
            description: 'Get the weather of a city.',
            inputSchema: z.object({ city: z.string().max(20) }),
            execute: async ({ city }) => {
              asked.push(city);
              return { sky: 'sunny', degrees: 21 };
            },
          }),
        },
      });
      assert(asked.length >= 1);
      assert.equal(result.steps.length, 2);
      assert(result.text.length > 0);
    });
  });
});
