// An upstream that answers at once, in OpenAI's format as vLLM writes it. `pace` makes its streams slow: so
// many milliseconds between chunks, and each chunk says when it was sent. A request of the user `apart` gets
// each chunk of its stream in a packet of its own.

import { createServer, type ServerResponse } from 'node:http';

const [port, chunkCount, paceMs] = process.argv.slice(2).map(Number) as [number, number, number];

const usage =
  '"usage":{"prompt_tokens":12,"total_tokens":62,"completion_tokens":50,"prompt_tokens_details":null}';
const envelope =
  '{"id":"chatcmpl-0a1b2c3d4e5f60718293a4b5c6d7e8f9","object":"chat.completion.chunk","created":1731628800,"model":"org/model"';
const plain = Buffer.from(
  `{"id":"chatcmpl-0a1b2c3d4e5f60718293a4b5c6d7e8f9","object":"chat.completion","created":1731628800,"model":"org/model","choices":[{"index":0,"message":{"role":"assistant","reasoning_content":null,"content":"${'Four and a half rivers meet. '.repeat(6)}","tool_calls":[]},"logprobs":null,"finish_reason":"stop","stop_reason":null}],${usage},"prompt_logprobs":null}`,
);
const models =
  '{"object":"list","data":[{"id":"org/model","object":"model","max_model_len":524288}]}';

const toChunk = (delta: string, finish = 'null') =>
  `data: ${envelope},"choices":[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finish}}]}\n\n`;
const opening = toChunk('{"role":"assistant","content":""}');
const closing = `${toChunk('{"content":""}', '"stop"')}data: ${envelope},"choices":[],${usage}}\n\ndata: [DONE]\n\n`;
const content = Buffer.from(toChunk('{"content":" river"}'));

createServer((request, response) => {
  if (request.method === 'GET') {
    request.resume();
    response.setHeader('content-type', 'application/json').end(models);
    return;
  }
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const body = Buffer.concat(parts);
    if (!body.includes('"stream":true')) {
      response.writeHead(200, {
        'content-type': 'application/json',
        'content-length': plain.length,
      });
      response.end(plain);
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    response.write(opening);
    if (paceMs > 0) trickle(response);
    else if (body.includes('"user":"apart"')) sendApart(response, chunkCount);
    else {
      for (let index = 0; index < chunkCount; index++) response.write(content);
      response.end(closing);
    }
  });
}).listen(port, '127.0.0.1');

function trickle(response: ServerResponse): void {
  let left = chunkCount;
  const timer = setInterval(() => {
    if (left-- > 0)
      response.write(toChunk(`{"content":"@${performance.timeOrigin + performance.now()}@"}`));
    else {
      clearInterval(timer);
      response.end(closing);
    }
  }, paceMs);
  response.once('close', () => clearInterval(timer));
}

/** What is written in one turn of the loop leaves together. */
function sendApart(response: ServerResponse, left: number): void {
  setImmediate(() => {
    if (left === 0) response.end(closing);
    else {
      response.write(content);
      sendApart(response, left - 1);
    }
  });
}
