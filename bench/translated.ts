// CPU of the server for a stream of 50 chunks in each API that is translated, compared with the same stream of chat
// completions. Usage: node bench/translated.ts [url…], by default /v1/responses and /v1/messages.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env, execPath } from 'node:process';

const [port, upstreamPort] = [18_086, 18_087];
const key = 'bench-key-that-is-long-enough-123456';
const model = 'llama3.1-8b-instruct';
const rounds = 9;
const streamsPerRound = 600;
const connections = 16;
const ticksPerSecond = 100;

const messages = [{ role: 'user', content: 'Go' }];
const bodies: Record<string, object> = {
  '/v1/chat/completions': { model, messages, stream: true },
  '/v1/responses': { model, input: 'Go', stream: true, store: false },
  '/v1/messages': { model, messages, max_tokens: 100, stream: true },
};

const agent = new Agent({ keepAlive: true, maxSockets: connections });

function ask(path: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sent = request({ port, path, method: 'POST', agent, headers }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`${path}: ${response.statusCode}`));
      response.resume().on('end', resolve);
    });
    sent.on('error', reject).end(JSON.stringify(bodies[path]));
  });
}

/** CPU time of all threads, as Linux counts it. */
function cpuMs({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / ticksPerSecond;
}

async function measure(server: ChildProcess, path: string): Promise<number> {
  const before = cpuMs(server);
  let left = streamsPerRound;
  const work = async () => {
    while (left-- > 0) await ask(path);
  };
  await Promise.all(Array.from({ length: connections }, work));
  return ((cpuMs(server) - before) * 1000) / streamsPerRound;
}

async function startServer(folder: string): Promise<ChildProcess> {
  const file = join(folder, 'bench.yaml');
  const backends = [{ name: 'bench', url: `http://127.0.0.1:${upstreamPort}/v1`, server: 'vllm' }];
  writeFileSync(file, JSON.stringify({ models: { catalog: { [model]: { backends } } } }));
  const places = ['--config', file, '--port', String(port), '--data-dir', join(folder, 'data')];
  const child = spawn(join(import.meta.dirname, '../millrace'), ['serve', ...places], {
    env: { ...env, MILLRACE_API_KEY: key },
    stdio: 'ignore',
  });
  for (let tries = 0; tries < 400; tries++) {
    if (await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => null)) return child;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error('the server did not start');
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

const asked = process.argv.slice(2);
const others = asked.length > 0 ? asked : ['/v1/responses', '/v1/messages'];
const paths = ['/v1/chat/completions', ...others];
const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
const script = join(import.meta.dirname, 'gateway/upstream.ts');
const upstream = spawn(execPath, [script, String(upstreamPort), '50', '0'], { stdio: 'ignore' });
const server = await startServer(folder);
const costs = new Map(paths.map((path) => [path, [] as number[]]));
for (const path of paths) await measure(server, path);
for (let round = 0; round < rounds; round++)
  for (const path of round % 2 === 0 ? paths : paths.toReversed())
    costs.get(path)?.push(await measure(server, path));
const base = median(costs.get('/v1/chat/completions') ?? []);
for (const [path, values] of costs) {
  const cost = median(values);
  console.log(`${path}: ${cost.toFixed(0)} µs a stream, ${(cost / base).toFixed(2)} of chat`);
}
for (const child of [server, upstream]) {
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  await gone;
}
agent.destroy();
rmSync(folder, { recursive: true, force: true });
