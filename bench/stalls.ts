// How long the server's event loop stands still for requests that are expensive to prepare or to read: many strict
// tools, and large plain responses. Usage: node bench/stalls.ts

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';

const port = 18_084;
const key = 'bench-key-that-is-long-enough-123456';
const url = `http://127.0.0.1:${port}`;
const parallel = 20;

const toProperties = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, { type: 'string' }]));

/** The last tool can't be enforced: the request ends with its grammar, and no model is waited for. */
function toToolRequest(request: number) {
  const toTool = (name: string, more: object) => ({
    type: 'function',
    function: { name, strict: true, parameters: { type: 'object', ...more } },
  });
  const tools = Array.from({ length: 127 }, (_, at) =>
    toTool(`tool_${request}_${at}`, { properties: toProperties(40) }),
  );
  return { model: 'hermes3-8b', tools: [...tools, toTool('last', { not: {} })] };
}

async function ask(body: object): Promise<number> {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Go' }], ...body }),
  });
  for await (const _ of response.body ?? []);
  return response.status;
}

/** The histogram begins anew with each look at it. */
async function maxDelayMs(): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return Number(/nodejs_eventloop_lag_max_seconds ([\d.e-]+)/.exec(metrics)?.[1]) * 1000;
}

async function measure(name: string, expected: number, bodies: object[]): Promise<void> {
  await maxDelayMs();
  const begunMs = performance.now();
  const statuses = await Promise.all(bodies.map(ask));
  const tookMs = performance.now() - begunMs;
  if (statuses.some((status) => status !== expected)) throw new Error(`answered ${statuses}`);
  const delayMs = await maxDelayMs();
  console.log(`${name}: longest delay ${delayMs.toFixed(0)} ms, took ${tookMs.toFixed(0)} ms`);
}

/** Tokens with their scores, as a chat with `logprobs` has them. */
function toLargeResponse(megabytes: number): Buffer {
  const scored = { token: ' water', logprob: -0.123456789, bytes: [32, 119, 97, 116, 101, 114] };
  const length = Math.floor((megabytes * 1_000_000) / (2 * JSON.stringify(scored).length));
  const content = Array.from({ length }, () => ({ ...scored, top_logprobs: [scored] }));
  const message = { role: 'assistant', content: 'water' };
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const choices = [{ index: 0, message, logprobs: { content }, finish_reason: 'stop' }];
  return Buffer.from(JSON.stringify({ choices, usage }));
}

async function startUpstream(): Promise<string> {
  const bodies = new Map([1, 50].map((size) => [`large-${size}`, toLargeResponse(size)]));
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const { model } = JSON.parse(Buffer.concat(parts).toString() || '{}') as { model?: string };
    const body = bodies.get(model ?? '') ?? Buffer.from('{"data":[]}');
    response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  });
  server.listen(0, '127.0.0.1').unref();
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

async function startServer(folder: string): Promise<ChildProcess> {
  const upstream = await startUpstream();
  const toModel = (model: string) => ({ backends: [{ name: 'large', url: upstream, model }] });
  const catalog = {
    'llama3.1-8b-instruct': toModel('large-1'),
    'llama3.1-70b-instruct-fp8': toModel('large-50'),
  };
  const file = join(folder, 'bench.yaml');
  writeFileSync(file, JSON.stringify({ models: { catalog } }));
  const places = ['--config', file, '--port', String(port), '--data-dir', join(folder, 'data')];
  const child = spawn(join(import.meta.dirname, '../millrace'), ['serve', ...places], {
    env: { ...env, MILLRACE_API_KEY: key },
    stdio: 'ignore',
  });
  for (let tries = 0; tries < 400; tries++) {
    if (await fetch(`${url}/healthz`).catch(() => null)) return child;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error('the server did not start');
}

const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
const server = await startServer(folder);
const many = Array.from({ length: parallel }, (_, request) => toToolRequest(request + 1));
const small = { model: 'llama3.1-8b-instruct' };
const large = { model: 'llama3.1-70b-instruct-fp8' };
await measure(
  'nothing',
  400,
  [toToolRequest(0)].map((body) => ({ ...body, tools: 1 })),
);
await measure('128 strict tools', 400, [toToolRequest(0)]);
await measure(`128 strict tools, ${parallel} in parallel`, 400, many);
await measure('a response of 1 MB', 200, [small]);
await measure('a response of 50 MB', 200, [large]);
await measure('a response of 50 MB, 4 in parallel', 200, [large, large, large, large]);
const gone = once(server, 'exit');
server.kill('SIGTERM');
await gone;
rmSync(folder, { recursive: true, force: true });
