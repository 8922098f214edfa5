// An upstream server that calls the first tool of a request with the arguments it is told, and then says what the tool
// returned.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after } from 'node:test';

const servers: Server[] = [];
after(() => {
  for (const server of servers) server.close().closeAllConnections();
});

interface ChatBody {
  stream?: boolean;
  messages: { role: string; content: string }[];
  tools?: { function: { name: string } }[];
}

/** Returns the base URL, including `/v1`. The model is called `tools`. */
export async function startToolModel(args: object): Promise<string> {
  const server = createServer(async (request, response) => {
    const bytes = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
    if (!request.url?.endsWith('/chat/completions')) {
      response.setHeader('content-type', 'application/json');
      return response.end(JSON.stringify({ object: 'list', data: [{ id: 'tools' }] }));
    }
    const body = JSON.parse(bytes.toString()) as ChatBody;
    const answer = toAnswer(body, args);
    if (!body.stream) {
      response.setHeader('content-type', 'application/json');
      const message = { role: 'assistant', ...answer };
      const choices = [{ index: 0, message, finish_reason: 'stop' }];
      return response.end(JSON.stringify({ ...head, choices }));
    }
    response.setHeader('content-type', 'text/event-stream');
    const choices = [{ index: 0, delta: answer, finish_reason: 'stop' }];
    response.end(`data: ${JSON.stringify({ ...head, choices })}\n\ndata: [DONE]\n\n`);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  servers.push(server);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

const head = {
  id: 'chatcmpl-1',
  created: 1,
  model: 'tools',
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
};

function toAnswer({ messages, tools }: ChatBody, args: object): object {
  const last = messages.at(-1);
  if (last?.role === 'tool') return { content: `The tool says ${JSON.stringify(last.content)}.` };
  const name = tools?.[0]?.function.name;
  if (name === undefined) return { content: 'Hello.' };
  const call = { name, arguments: JSON.stringify(args) };
  return {
    content: null,
    tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: call }],
  };
}
