// OpenAI's agents package over both APIs it speaks: an agent that calls a function and hands over to another agent.

import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { type SayingUpstream, startSayingUpstream } from '#test/support/saying-upstream.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const call = (id: string, name: string, args: object) => ({
  tool_calls: [
    { index: 0, id, type: 'function', function: { name, arguments: JSON.stringify(args) } },
  ],
});

describe('an agent of OpenAI’s package', () => {
  let server: TestServer;
  let upstream: SayingUpstream;
  before(async () => {
    upstream = await startSayingUpstream();
    const backends = [{ name: 'said', url: upstream.url }];
    server = await startTestServer({ config: { models: { catalog: { said: { backends } } } } });
  });

  for (const useResponses of [true, false]) {
    for (const stream of [false, true]) {
      const api = useResponses ? 'responses' : 'chat completions';
      test(`calls a function and hands over, by ${stream ? 'streamed ' : ''}${api}`, async () => {
        const openAIClient = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: server.key });
        const modelProvider = new OpenAIProvider({ openAIClient, useResponses });
        const runner = new Runner({ modelProvider, tracingDisabled: true });
        const asked: string[] = [];
        const weather = tool({
          name: 'get_weather',
          description: 'The weather of a city',
          parameters: z.object({ city: z.string() }),
          async execute({ city }) {
            asked.push(city);
            return `It rains in ${city}.`;
          },
        });
        const poet = new Agent({ name: 'Poet', instructions: 'You rhyme.', model: 'said' });
        const guide = new Agent({
          name: 'Guide',
          instructions: 'You help travellers.',
          model: 'said',
          tools: [weather],
          handoffs: [poet],
        });
        const known = upstream.requests.length;
        upstream.sayInTurn(
          call('call_1', 'get_weather', { city: 'Paris' }),
          call('call_2', 'transfer_to_Poet', {}),
          'Rain again, in Spain.',
        );
        const result = stream
          ? await runner.run(guide, 'A poem on the weather in Paris, please.', { stream: true })
          : await runner.run(guide, 'A poem on the weather in Paris, please.');
        if ('completed' in result) await result.completed;
        assert.equal(result.finalOutput, 'Rain again, in Spain.');
        assert.equal(result.lastAgent?.name, 'Poet');
        assert.deepEqual(asked, ['Paris']);
        const [first, second, third, ...more] = upstream.requests.slice(known);
        assert.deepEqual(more, []);
        const offered = (first?.tools ?? []) as { function: { name: string } }[];
        assert.deepEqual(
          offered.map((one) => one.function.name),
          ['get_weather', 'transfer_to_Poet'],
        );
        assert.match(JSON.stringify(second?.messages.at(-1)), /It rains in Paris\./);
        assert.match(JSON.stringify(third?.messages[0]), /You rhyme\./);
        const { usage } = result.state;
        assert.deepEqual([usage.requests, usage.outputTokens], [3, 3]);
      });
    }
  }
});
