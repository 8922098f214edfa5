// A batch of many short lines on the scripted engine: lines per second, and the server's memory while it runs.
// Usage: node bench/batches.ts [lines], by default 1,000,000.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { startScriptedUpstream } from '../src/inference/engines/scripted/server.ts';
import { createServers, key, listening, residentMb } from './gateway/servers.ts';

const lines = Number(process.argv[2] ?? 1_000_000);
const port = 18_089;
const model = 'llama3.1-8b-instruct';
const url = `http://127.0.0.1:${port}/v1`;
const headers = { authorization: `Bearer ${key}` };

const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const upstream = await startScriptedUpstream({ words: 4 });
const { start } = createServers();
const config = join(folder, 'bench.yaml');
const backends = [{ name: 'scripted', url: upstream.url, server: 'vllm' }];
writeFileSync(
  config,
  JSON.stringify({
    inference: { batches: { concurrency: 64, max_lines: lines } },
    models: { catalog: { [model]: { backends } } },
  }),
);
const server = start(
  join(import.meta.dirname, '../millrace'),
  ['serve', '--config', config, '--port', String(port), '--data-dir', join(folder, 'data')],
  { MILLRACE_API_KEY: key },
);
await listening(port);
console.log(`idle: ${residentMb(server).toFixed(0)} MB resident`);

const body = { model, max_tokens: 4, messages: [{ role: 'user', content: 'Go' }] };
const toLine = (_: unknown, index: number) =>
  `${JSON.stringify({ custom_id: `line-${index}`, method: 'POST', url: '/v1/chat/completions', body })}\n`;
const form = new FormData();
form.set('purpose', 'batch');
form.set('file', new File([Array.from({ length: lines }, toLine).join('')], 'lines.jsonl'));
const { id: input_file_id } = await ask('/files', { method: 'POST', body: form });
const { id } = await ask('/batches', {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    input_file_id,
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  }),
});
console.log(`uploaded: ${residentMb(server).toFixed(0)} MB resident, ${await readHeap()}`);

const begunMs = performance.now();
let shownMs = 0;
for (let status = ''; status !== 'completed'; await pause(1000)) {
  const batch = await ask(`/batches/${id}`);
  status = String(batch.status);
  const { completed, failed } = batch.request_counts as { completed: number; failed: number };
  if (status === 'failed' || failed > 0) throw new Error(JSON.stringify(batch));
  if (performance.now() - shownMs < 10_000 && status !== 'completed') continue;
  shownMs = performance.now();
  const seconds = (performance.now() - begunMs) / 1000;
  console.log(
    `${seconds.toFixed(0)} s: ${status}, ${completed} lines, ${(completed / seconds).toFixed(0)} a second; ${residentMb(server).toFixed(0)} MB resident, ${await readHeap()}`,
  );
}
process.exit(0);

async function ask(path: string, init: RequestInit = {}): Promise<Record<string, unknown>> {
  const response = await fetch(url + path, { ...init, headers: { ...headers, ...init.headers } });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Record<string, unknown>;
}

async function readHeap(): Promise<string> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
  const read = (name: string) => Number(new RegExp(`^${name} (.+)$`, 'm').exec(text)?.[1] ?? 0);
  const megabytes = (name: string) => (read(`nodejs_${name}_bytes`) / 2 ** 20).toFixed(0);
  const collections = read('nodejs_gc_duration_seconds_count\\{kind="major"\\}');
  return `heap ${megabytes('heap_size_used')} of ${megabytes('heap_size_total')} MB, outside of it ${megabytes('external_memory')} MB, ${collections} major collections`;
}
