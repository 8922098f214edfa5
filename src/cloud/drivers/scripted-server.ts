// What listens inside scripted machines: on every port, a server with OpenAI's API whose model says the machine's id.

import { type Duplex, duplexPair } from 'node:stream';
import { createServer } from '#http/node-http.ts';

export function connectToScriptedServer(machineId: string): Duplex {
  const [near, far] = duplexPair();
  const message = { role: 'assistant', content: machineId };
  const body = JSON.stringify({
    id: 'scripted',
    object: 'chat.completion',
    created: 1,
    model: 'scripted',
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  });
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  });
  server.emit('connection', far);
  return near;
}
