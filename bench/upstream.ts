// CPU that the upstream engine takes for a stream of 50 chunks, without the rest of the server:
// `node bench/upstream.ts [stream|apart] [root…]`. `stream` sends all chunks in one packet, `apart` each in its own.
// Several roots (working trees) are measured in turns, so that other work on the machine affects each alike.

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join, resolve } from 'node:path';

const rounds = 15;
const streamsPerRound = { stream: 1500, apart: 400 };
const connections = 32;

const envelope =
  '{"id":"chatcmpl-0a1b2c3d4e5f60718293a4b5c6d7e8f9","object":"chat.completion.chunk","created":1731628800,"model":"m"';
const toEvent = (delta: string, finish = 'null') =>
  `data: ${envelope},"choices":[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finish}}]}\n\n`;
const toChunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const usage = '"usage":{"prompt_tokens":12,"total_tokens":62,"completion_tokens":50}';
const first = `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n${toChunk(toEvent('{"role":"assistant","content":""}'))}`;
const middle = toChunk(toEvent('{"content":" river"}'));
const last = `${toChunk(toEvent('{"content":""}', '"stop"'))}${toChunk(`data: ${envelope},"choices":[],${usage}}\n\n`)}${toChunk('data: [DONE]\n\n')}0\r\n\r\n`;

const [mode = 'stream', ...roots] = process.argv.slice(2);
if (process.send !== undefined) await serveRounds();
else
  await compare(
    mode === 'apart' ? 'apart' : 'stream',
    roots.length > 0 ? roots : [join(import.meta.dirname, '..')],
  );

async function compare(kind: 'stream' | 'apart', trees: string[]): Promise<void> {
  const server = createServer((socket) => {
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('data', () => respond(socket, kind));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const children: ChildProcess[] = [];
  for (const tree of trees) {
    const options = { execArgv: ['--max-semi-space-size=16', '--v8-pool-size=1'] };
    const child = fork(import.meta.filename, [resolve(tree), String(port)], options);
    await once(child, 'message');
    children.push(child);
  }
  const costs = new Map(children.map((child) => [child, [] as number[]]));
  for (const child of children) await measure(child, streamsPerRound[kind] * 2);
  for (let round = 0; round < rounds; round++)
    for (const child of round % 2 === 0 ? children : children.toReversed())
      costs.get(child)?.push(await measure(child, streamsPerRound[kind]));
  for (const [index, child] of children.entries()) {
    const sorted = (costs.get(child) ?? []).toSorted((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)]?.toFixed(1);
    console.log(`${trees[index]}: median ${median} µs, least ${sorted[0]?.toFixed(1)} µs a stream`);
    child.kill();
  }
  server.close();
  process.exit(0);
}

function respond(socket: Socket, kind: 'stream' | 'apart'): void {
  if (kind === 'stream') {
    socket.write(first + middle.repeat(50) + last);
    return;
  }
  let left = 50;
  const next = () => {
    if (left-- === 0) socket.write(last);
    else {
      socket.write(middle);
      setImmediate(next);
    }
  };
  socket.write(first);
  setImmediate(next);
}

async function measure(child: ChildProcess, streams: number): Promise<number> {
  child.send(streams);
  const [cost] = await once(child, 'message');
  return cost as number;
}

function drop(): undefined {}

/** In a child process: runs the number of streams that it was sent, and reports CPU microseconds a stream. */
async function serveRounds(): Promise<void> {
  const [root, port] = process.argv.slice(2);
  const module = `${root}/src/inference/engines/upstream/upstream.ts`;
  const { createUpstreamEngine } = (await import(
    module
  )) as typeof import('../src/inference/engines/upstream/upstream.ts');
  const url = `http://127.0.0.1:${port}/v1`;
  const timeouts = { connectMs: 60_000, firstByteMs: 60_000, idleMs: 60_000 };
  const engine = createUpstreamEngine({
    name: 'u',
    url,
    apiKey: null,
    model: 'm',
    headers: {},
    server: 'vllm',
    connections: null,
    timeouts,
  });
  const { signal } = new AbortController();
  const body = {
    model: 'm',
    messages: [{ role: 'user' as const, content: 'Hi' }],
    max_tokens: 256,
    stream: true,
  };
  const call = {
    envelope: { requestId: '1', id: 'chat-1', created: 1, model: 'm', kind: 'chat' as const },
    signal,
    caller: 'bench',
    priority: 0,
    contextWindow: 8192,
  };

  process.on('message', async (streams: number) => {
    let left = streams;
    const before = process.cpuUsage();
    const worker = async () => {
      while (left-- > 0) await (await engine.stream({ kind: 'chat', body }, call)).forEach?.(drop);
    };
    await Promise.all(Array.from({ length: connections }, worker));
    const { user, system } = process.cpuUsage(before);
    process.send?.((user + system) / streams);
  });
  process.send?.('ready');
}
