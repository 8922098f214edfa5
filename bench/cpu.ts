// CPU time of the server per request, which depends less on what else the machine does than a rate: plain chats and
// streams of 50 chunks, beside bare pass-throughs and other checkouts of Millrace.
// Usage: node bench/cpu.ts [checkout…]

import type { ChildProcess } from 'node:child_process';
import { basename, join, resolve } from 'node:path';
import { sendMany } from './gateway/load.ts';
import { createServers, key, listening, readCpu } from './gateway/servers.ts';

const rounds = Number(process.env.ROUNDS ?? 11);
const requests = 1_500;
/** For each target before it is measured: the larger a program, the longer until all of it is compiled. */
const warmUpRequests = 15_000;
const ports = { quick: 18_190, slow: 18_191, fastify: 18_193, http: 18_194, ours: 18_200 };

const { script, millrace } = createServers();
const model = 'hermes3-8b';
const text = 'How many rivers meet at the old mill, and what are they called?';
const chat = {
  model,
  messages: [
    { role: 'system', content: 'You answer briefly.' },
    { role: 'user', content: text },
  ],
  temperature: 0.7,
  max_tokens: 256,
};

interface Case {
  readonly name: string;
  readonly server: ChildProcess;
  readonly port: number;
  readonly path: string;
  readonly body: object;
}

const chatPath = '/v1/chat/completions';

script('gateway/upstream.ts', ports.quick, 50, 0);
const fastify = script('gateway/bare-fastify.ts', ports.fastify, ports.quick);
const http = script('gateway/bare-http.ts', ports.http, ports.quick);
const roots = [join(import.meta.dirname, '..'), ...process.argv.slice(2)];
const ours = roots.map((root, index) => {
  const port = ports.ours + index;
  const name = index === 0 ? 'millrace' : `millrace in ${basename(resolve(root))}`;
  return { name, server: millrace(resolve(root), port, ports), port };
});
for (const port of [ports.quick, ports.fastify, ports.http, ...ours.map((one) => one.port)])
  await listening(port);

const bareFastify = { name: 'bare Fastify + undici', server: fastify, port: ports.fastify };
const bareHttp = { name: 'bare node:http + undici', server: http, port: ports.http };
const streamed = { ...chat, stream: true };
/** Makes the upstream send each chunk in a packet. */
const apart = { ...streamed, user: 'apart' };
const translated = [
  { path: '/v1/responses', body: { model, input: text, stream: true, store: false } },
  { path: '/v1/messages', body: { ...streamed, messages: chat.messages.slice(1) } },
];
await compare(
  'Plain chat',
  [...ours, bareFastify, bareHttp].map((one) => ({ ...one, path: chatPath, body: chat })),
);
await compare('Streams of 50 chunks', [
  ...[...ours, bareHttp].map((one) => ({ ...one, path: chatPath, body: streamed })),
  ...translated.flatMap((one) =>
    ours.map((server) => ({ ...server, ...one, name: `${server.name} ${one.path}` })),
  ),
]);
await compare(
  'Streams of 50 chunks, each in a packet',
  [...ours, bareHttp].map((one) => ({ ...one, path: chatPath, body: apart })),
);
process.exit(0);

/** All cases in turns, every other time in the opposite order. The least of the rounds had the fewest disturbances. */
async function compare(title: string, cases: readonly Case[]): Promise<void> {
  console.log(`${title}: µs of CPU per request, all threads and the main thread; the first ÷ each`);
  const costs = new Map(cases.map((one) => [one, { all: [] as number[], main: [] as number[] }]));
  for (const one of cases) await measure(one, warmUpRequests);
  for (let round = 0; round < rounds; round++)
    for (const one of round % 2 === 0 ? cases : cases.toReversed()) {
      const { all, main } = await measure(one, requests);
      costs.get(one)?.all.push(all);
      costs.get(one)?.main.push(main);
    }
  const least = [...costs].map(([{ name }, { all, main }]) => ({
    name,
    all: Math.min(...all),
    main: Math.min(...main),
  }));
  const [first] = least;
  for (const { name, all, main } of least)
    console.log(
      `  ${name}: ${all.toFixed(1)} and ${main.toFixed(1)}; ${((first?.all ?? 0) / all).toFixed(2)} and ${((first?.main ?? 0) / main).toFixed(2)}`,
    );
}

async function measure({ server, port, path, body }: Case, count: number) {
  const target = { name: path, port, headers: { authorization: `Bearer ${key}` } };
  const before = readCpu(server);
  await sendMany(target, JSON.stringify(body), count, path);
  const after = readCpu(server);
  const each = (name: keyof typeof after) => ((after[name] - before[name]) * 1000) / count;
  return { all: each('allMs'), main: each('mainMs') };
}
