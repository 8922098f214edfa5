// Resident memory of the server with 1,000 open slow streams of each API, beside other checkouts of Millrace. Every figure
// is of a fresh server. Usage: node bench/streams.ts [checkout…], with RUNS (by default 2) and APIS (by default all).

import { readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { openSlowly } from './gateway/load.ts';
import { createServers, key, listening } from './gateway/servers.ts';

const runs = Number(process.env.RUNS ?? 2);
const ports = { quick: 18_290, slow: 18_291, ours: 18_292 };
const roots = [join(import.meta.dirname, '..'), ...process.argv.slice(2)].map((one) =>
  resolve(one),
);
const model = 'hermes3-70b';
const input = 'How many rivers meet at the old mill, and what are they called?';
const messages = [{ role: 'user', content: input }];
const apis = {
  chat: ['/v1/chat/completions', { model, messages, max_tokens: 256, stream: true }],
  responses: ['/v1/responses', { model, input, stream: true }],
  messages: ['/v1/messages', { model, messages, max_tokens: 256, stream: true }],
} as const;
type Name = keyof typeof apis;
const asked = (process.env.APIS?.split(',') ?? Object.keys(apis)) as Name[];

const { script, millrace } = createServers();
script('gateway/upstream.ts', ports.slow, 100, 200);
await listening(ports.slow);
for (const name of asked)
  for (let run = 0; run < runs; run++)
    for (const root of run % 2 === 0 ? roots : roots.toReversed())
      console.log(`${name}, ${basename(root)}: ${await measure(root, name)}`);
process.exit(0);

async function measure(root: string, name: Name): Promise<string> {
  const [path, body] = apis[name];
  const server = millrace(root, ports.ours, ports);
  await listening(ports.ours);
  await pause(4_000);
  const idle = readMb(server.pid);
  const target = { name, port: ports.ours, headers: { authorization: `Bearer ${key}` } };
  const open = await openSlowly(target, JSON.stringify(body), path);
  await pause(8_000);
  const busy = readMb(server.pid);
  server.kill('SIGKILL');
  await Promise.allSettled(open);
  return `${busy} MB (idle ${idle} MB)`;
}

function readMb(pid: number | undefined): string {
  const rss = /^Rss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1];
  return (Number(rss) / 1024).toFixed(0);
}
