// An upstream server that streams what a test tells it to say, for tests of how answers are shown.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after } from 'node:test';

const servers: Server[] = [];
after(() => {
  for (const server of servers) server.close().closeAllConnections();
});

type Delta = Record<string, unknown>;

export interface SayingUpstream {
  /** Base URL, including `/v1`. */
  url: string;
  /** What the next responses say, in these pieces: the text of each, or a whole delta. */
  say(...pieces: (string | Delta)[]): void;
  /** The bodies of the chat requests so far. */
  requests: { model: string; messages: { role: string; content: unknown }[]; tools?: unknown }[];
}

/** The message of a whole response. Calls must be whole in one delta. */
function fold(deltas: readonly Delta[]): Delta {
  const join = (name: string) => deltas.map((delta) => delta[name] ?? '').join('');
  const calls = deltas.flatMap(({ tool_calls }) => tool_calls ?? []);
  const thoughts = join('reasoning_content');
  return {
    role: 'assistant',
    content: join('content'),
    ...(thoughts !== '' && { reasoning_content: thoughts }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

export async function startSayingUpstream(): Promise<SayingUpstream> {
  let deltas: Delta[] = [{ content: 'Hello.' }];
  const requests: SayingUpstream['requests'] = [];
  const server = createServer(async (request, response) => {
    const chunks = await Array.fromAsync(request as AsyncIterable<Buffer>);
    if (!request.url?.endsWith('/chat/completions')) {
      response.setHeader('content-type', 'application/json');
      return response.end(JSON.stringify({ object: 'list', data: [{ id: 'said' }] }));
    }
    const body = JSON.parse(Buffer.concat(chunks).toString());
    requests.push(body);
    const counts = { prompt_tokens: 10, completion_tokens: deltas.length };
    const usage = { ...counts, total_tokens: 10 + deltas.length };
    if (body.stream !== true) {
      response.setHeader('content-type', 'application/json');
      const choices = [{ index: 0, message: fold(deltas), finish_reason: 'stop' }];
      return response.end(JSON.stringify({ id: 'chatcmpl-1', created: 1, choices, usage }));
    }
    response.setHeader('content-type', 'text/event-stream');
    const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'said' };
    const send = (event: object) => response.write(`data: ${JSON.stringify(event)}\n\n`);
    for (const delta of deltas) {
      send({ ...head, choices: [{ index: 0, delta, finish_reason: null }] });
    }
    send({ ...head, choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
    send({ ...head, choices: [], usage });
    response.end('data: [DONE]\n\n');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  servers.push(server);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    say(...pieces) {
      deltas = pieces.map((piece) => (typeof piece === 'string' ? { content: piece } : piece));
    },
    requests,
  };
}
