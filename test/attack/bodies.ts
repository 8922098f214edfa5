// The long form of the attacks with request bodies. It starts the real program, sends sixty bodies of each kind at
// once, and prints the responses, the peak memory and the slowest /healthz. Not part of `npm test`.

import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { attacks } from '#test/support/attack/bodies-sent.ts';
import type { Watched } from '#test/support/attack/watch-server.ts';
import { makeFolder, serveMillrace } from '#test/support/process.ts';

const parallel = 60;
const only = process.argv.slice(2);

const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
const message = { role: 'assistant', content: 'Done.' };
const choices = [{ index: 0, message, finish_reason: 'stop' }];
const completion = JSON.stringify({
  id: 'a',
  object: 'chat.completion',
  model: 'm',
  choices,
  usage,
});
/** A backend that discards request bodies, so that it costs next to nothing. */
const backend = createServer((incoming, response) => {
  incoming.resume().once('end', () => response.end(completion));
}).listen(0, '127.0.0.1');
await once(backend, 'listening');
const url = `http://127.0.0.1:${(backend.address() as AddressInfo).port}/v1`;
const config = join(makeFolder(), 'millrace.yaml');
const listed = `{ name: a, url: "${url}", model: m, server: vllm }`;
writeFileSync(
  config,
  `models: { catalog: { attacked: { context_window: 10000000, backends: [${listed}] } } }\n`,
);

console.log(`${parallel} bodies at once, by kind`);
for (const [name, attack] of Object.entries(attacks)) {
  if (only.length > 0 && !only.includes(name)) continue;
  const server = await serveMillrace(['--config', config]);
  const key = /sk-\S+|mr_\S+|API key\s+(\S+)/.exec(server.stdout());
  const bearer = key?.[1] ?? key?.[0] ?? '';
  const watch = watchServer(server.url, server.child.pid ?? 0);
  const body = attack.body();
  const begun = performance.now();
  const statuses = await Promise.all(
    Array.from({ length: parallel }, () => post(server.url, attack.path, bearer, body)),
  );
  const ms = performance.now() - begun;
  const { worstMs, peakMb, isUp } = await watch.end();
  console.log(
    `${name.padEnd(12)} ${(body.length / 1e6).toFixed(1)} MB  ${toCounts(statuses)}  ` +
      `in ${(ms / 1000).toFixed(1)} s  memory ${peakMb.toFixed(0)} MB  ` +
      `/healthz at most ${worstMs.toFixed(0)} ms${isUp ? '' : '  THE SERVER ENDED'}`,
  );
  server.child.kill('SIGTERM');
  await server.ended;
}
process.exit(0);

function post(url: string, path: string, key: string, body: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'content-length': body.length,
    };
    const sent = request(`${url}${path}`, { method: 'POST', headers, agent: false });
    sent.once('error', ({ message }) => resolve(message));
    sent.once('response', (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.once('close', () => resolve(toWord(response.statusCode, Buffer.concat(parts))));
    });
    sent.end(body);
  });
}

function toWord(status: number | undefined, body: Buffer): string {
  const { error } = JSON.parse(`${body}`) as { error?: { code?: string } };
  return error === undefined ? `${status}` : `${status} ${error.code}`;
}

function toCounts(words: readonly string[]): string {
  const counts = Map.groupBy(words, (word) => word);
  return [...counts].map(([word, all]) => `${all.length} × ${word}`).join(', ');
}

/** Watches in a thread, so that the work of this one is not measured. */
function watchServer(url: string, pid: number) {
  const file = new URL('../support/attack/watch-server.ts', import.meta.url);
  const worker = new Worker(file, { workerData: { url, pid } });
  return {
    async end() {
      worker.postMessage('end');
      const [watched] = (await once(worker, 'message')) as [Watched];
      return watched;
    },
  };
}
