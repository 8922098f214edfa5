// What affinity saves: the cached tokens of agents' conversations of ten turns on two servers with the built-in model,
// through Millrace, which keeps a conversation on one of them, and with the turns of each alternating between them.
// Usage: node bench/affinity.ts [conversations], by default 4 at the same time.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServers, key, listening } from './gateway/servers.ts';

const conversations = Number(process.argv[2] ?? 4);
const turns = 10;
const model = 'llama3.1-8b-instruct';
const [gateway, ...backendPorts] = [18_080, 18_081, 18_082];

const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
const { start } = createServers();
const backends = backendPorts.map((port) => ({
  name: `local-${port}`,
  url: `http://127.0.0.1:${port}/v1`,
  server: 'openai',
  api_key: key,
}));
const config = join(folder, 'bench.yaml');
writeFileSync(config, JSON.stringify({ models: { catalog: { [model]: { backends } } } }));
for (const port of backendPorts) serve(port);
serve(gateway, '--config', config);
for (const port of [gateway, ...backendPorts]) await listening(port);

interface Counts {
  prompt: number;
  cached: number;
}

/** The order matters to the servers' caches, so each run has texts of its own. */
await run('turns alternate', (turn) => backendPorts[turn % 2] ?? 0);
await run('through Millrace', () => gateway);
process.exit(0);

function serve(port: number, ...more: string[]): void {
  const data = join(folder, String(port));
  const args = ['serve', '--port', String(port), '--data-dir', data, ...more];
  start(join(import.meta.dirname, '../millrace'), args, { MILLRACE_API_KEY: key });
}

async function run(name: string, toPort: (turn: number) => number): Promise<void> {
  const all = await Promise.all(
    Array.from({ length: conversations }, (_, index) =>
      converse(`${name} ${index}`, index, toPort),
    ),
  );
  const sum = (of: (counts: Counts) => number) => all.reduce((total, one) => total + of(one), 0);
  const [prompt, cached] = [sum((one) => one.prompt), sum((one) => one.cached)];
  console.log(
    `${name}: ${cached} of ${prompt} prompt tokens were cached (${((100 * cached) / prompt).toFixed(0)} %), ${prompt - cached} were computed`,
  );
}

async function converse(
  name: string,
  index: number,
  toPort: (turn: number) => number,
): Promise<Counts> {
  const task = `You are the agent ${name}. `;
  const messages = [{ role: 'system', content: task + 'Count the sacks in the mill. '.repeat(8) }];
  const counts: Counts = { prompt: 0, cached: 0 };
  for (let turn = 0; turn < turns; turn++) {
    messages.push({
      role: 'user',
      content: `Turn ${turn}: ${'how many sacks are left? '.repeat(3)}`,
    });
    const { content, usage } = await ask(toPort(turn + index), messages);
    counts.prompt += usage.prompt_tokens;
    counts.cached += usage.prompt_tokens_details?.cached_tokens ?? 0;
    messages.push({ role: 'assistant', content });
  }
  return counts;
}

interface Usage {
  prompt_tokens: number;
  prompt_tokens_details: { cached_tokens: number } | null;
}

async function ask(port: number, messages: object[]): Promise<{ content: string; usage: Usage }> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages, max_tokens: 12, temperature: 0 }),
  });
  if (!response.ok) throw new Error(await response.text());
  const { choices, usage } = (await response.json()) as {
    choices: { message: { content: string } }[];
    usage: Usage;
  };
  return { content: choices[0]?.message.content ?? '', usage };
}
