// The clients: wrk for peak rates, and our own for what wrk can't see: the first byte at a given rate, and
// many slow streams at once.

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { join } from 'node:path';

export interface Target {
  name: string;
  port: number;
  headers: Record<string, string>;
}

/** Requests per second at 32 connections. Throws when an answer was not 200, or too short to be one. */
export function peakRate(target: Target, body: string, seconds: number, folder: string): number {
  const script = join(folder, 'post.lua');
  const headers = { 'content-type': 'application/json', ...target.headers };
  writeFileSync(
    script,
    [
      'wrk.method = "POST"',
      `wrk.body = ${JSON.stringify(body)}`,
      ...Object.entries(headers).map(
        ([name, value]) => `wrk.headers[${JSON.stringify(name)}] = ${JSON.stringify(value)}`,
      ),
    ].join('\n'),
  );
  const url = `http://127.0.0.1:${target.port}/v1/chat/completions`;
  const { stdout, error } = spawnSync(
    'wrk',
    ['-t1', '-c32', `-d${seconds}s`, '--timeout', '10s', '-s', script, url],
    { encoding: 'utf8' },
  );
  if (error !== undefined) throw new Error(`wrk is needed (apt-get install wrk): ${error.message}`);
  const rate = Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]);
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`${target.name}: ${stdout}`);
  return rate;
}

export interface Timing {
  firstByteMs: number;
  /** The longest time a chunk took from the upstream's write to our read; only for slow streams. */
  worstLagMs: number;
  bytes: number;
}

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

export function once(target: Target, body: string): Promise<Timing> {
  return new Promise((resolve, reject) => {
    const begun = performance.now();
    let firstByteMs = 0;
    let worstLagMs = 0;
    let bytes = 0;
    const request = httpRequest(
      {
        agent,
        port: target.port,
        host: '127.0.0.1',
        path: '/v1/chat/completions',
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          ...target.headers,
        },
      },
      (response) => {
        response.on('data', (data: Buffer) => {
          firstByteMs ||= performance.now() - begun;
          bytes += data.length;
          const now = performance.timeOrigin + performance.now();
          for (const [, sent] of data.toString('latin1').matchAll(/@([\d.]+)@/g)) {
            worstLagMs = Math.max(worstLagMs, now - Number(sent));
          }
        });
        response.on('end', () => {
          if (response.statusCode === 200) resolve({ firstByteMs, worstLagMs, bytes });
          else reject(new Error(`${target.name} answered ${response.statusCode}`));
        });
        response.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** Sends at a steady rate whether or not the answers came, as many users do. */
export async function atRate(
  target: Target,
  body: string,
  perSecond: number,
  seconds: number,
): Promise<Timing[]> {
  const running: Promise<Timing>[] = [];
  const begun = performance.now();
  for (let sent = 0; sent < perSecond * seconds; ) {
    const due = Math.floor(((performance.now() - begun) / 1000) * perSecond);
    for (; sent < due; sent++) running.push(once(target, body));
    await new Promise((done) => setTimeout(done, 1));
  }
  return Promise.all(running);
}

export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}
