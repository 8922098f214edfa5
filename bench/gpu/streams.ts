// Streams of two servers in turns: tokens per second, and the ratio of each round.

import type { Server } from './servers.ts';

export interface Level {
  readonly streams: number;
  readonly tokens: number;
}

/** Prints a line per level: the rates' medians, and the median, least and greatest of the rounds' ratios. */
export async function compare(
  [name, measured]: [string, Server],
  [baseName, base]: [string, Server],
  levels: readonly Level[],
  rounds: number,
): Promise<void> {
  for (const server of [measured, base]) await tokensPerSecond(server, { streams: 2, tokens: 8 });
  for (const level of levels) {
    const rates: { ours: number[]; theirs: number[] } = { ours: [], theirs: [] };
    for (let round = 0; round < rounds; round++) {
      const ours = async () => rates.ours.push(await tokensPerSecond(measured, level));
      const theirs = async () => rates.theirs.push(await tokensPerSecond(base, level));
      for (const turn of round % 2 === 0 ? [ours, theirs] : [theirs, ours]) await turn();
    }
    const ratios = rates.ours.map((rate, round) => rate / (rates.theirs[round] ?? Number.NaN));
    const range = `${Math.min(...ratios).toFixed(3)}-${Math.max(...ratios).toFixed(3)}`;
    console.log(
      `${level.streams} × ${level.tokens}: ${name} ${median(rates.ours).toFixed(0)} ÷ ${baseName} ` +
        `${median(rates.theirs).toFixed(0)} tokens/s = ${median(ratios).toFixed(3)} (${range}, ${rounds} rounds)`,
    );
  }
}

async function tokensPerSecond(server: Server, { streams, tokens }: Level): Promise<number> {
  const start = performance.now();
  const counts = await Promise.all(Array.from({ length: streams }, () => stream(server, tokens)));
  const total = counts.reduce((sum, count) => sum + count, 0);
  return (total / (performance.now() - start)) * 1000;
}

/** Resolves to the number of tokens. The prompts differ, so that no server reuses the work for another one. */
async function stream({ url, key, model }: Server, tokens: number): Promise<number> {
  const words = Array.from({ length: 24 }, () => Math.random().toString(36).slice(2, 8));
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model,
      messages: [{ role: 'user', content: words.join(' ') }],
      max_tokens: tokens,
      temperature: 0,
      ignore_eos: true,
      stream: true,
      stream_options: { include_usage: true },
    }),
  });
  if (!response.ok || response.body === null) {
    throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  }
  let tail = '';
  const decoder = new TextDecoder();
  for await (const bytes of response.body) {
    tail = (tail + decoder.decode(bytes, { stream: true })).slice(-2000);
  }
  const found = /"completion_tokens":\s*(\d+)/.exec(tail)?.[1];
  if (found === undefined) throw new Error(`${url} sent no usage: ${tail}`);
  return Number(found);
}

const median = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
