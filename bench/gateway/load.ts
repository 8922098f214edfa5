// The clients: wrk for peak rates, and our own for what wrk can't see: the first byte at a given rate, and
// many slow streams at once.

import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';

export interface Target {
  name: string;
  port: number;
  headers: Record<string, string>;
}

const chatPath = '/v1/chat/completions';

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
  const url = `http://127.0.0.1:${target.port}${chatPath}`;
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

/** Sends a number of requests over 16 connections, on bare sockets. */
export async function sendMany(
  target: Target,
  body: string,
  count: number,
  path = chatPath,
): Promise<void> {
  const request = toRequest(target, body, path);
  let left = count;
  const work = async () => {
    const socket = connect({ port: target.port, host: '127.0.0.1', noDelay: true });
    while (left-- > 0) await exchange(socket, request);
    socket.destroy();
  };
  await Promise.all(Array.from({ length: 16 }, work));
}

function exchange(socket: Socket, request: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let text = '';
    const take = (data: Buffer) => {
      text += data.toString('latin1');
      if (!isWhole(text)) return;
      socket.off('data', take).off('error', reject);
      if (text.startsWith('HTTP/1.1 200')) resolve();
      else reject(new Error(text));
    };
    socket.on('data', take).on('error', reject).write(request);
  });
}

function isWhole(text: string): boolean {
  if (text.endsWith('\r\n0\r\n\r\n')) return true;
  const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
  return length !== undefined && text.length === text.indexOf('\r\n\r\n') + 4 + Number(length);
}

export interface Timing {
  /** The longest time a chunk took from the upstream's write to our read; only for slow streams. */
  worstLagMs: number;
  bytes: number;
}

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

export function once(target: Target, body: string, path = chatPath): Promise<Timing> {
  return new Promise((resolve, reject) => {
    let worstLagMs = 0;
    let bytes = 0;
    const request = httpRequest(
      {
        agent,
        port: target.port,
        host: '127.0.0.1',
        path,
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          ...target.headers,
        },
      },
      (response) => {
        response.on('data', (data: Buffer) => {
          bytes += data.length;
          // The quick streams' chunks don't say when they were sent, and looking would take the gateway's time.
          if (data.includes('@')) worstLagMs = Math.max(worstLagMs, maxLagMs(data));
        });
        response.on('end', () => {
          if (response.statusCode === 200) resolve({ worstLagMs, bytes });
          else reject(new Error(`${target.name} answered ${response.statusCode}`));
        });
        response.on('error', reject);
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

/** Opens 1,000 streams, two hundred a second: a burst would measure how fast they begin. */
export async function openSlowly(
  target: Target,
  body: string,
  path?: string,
): Promise<Promise<Timing>[]> {
  const running: Promise<Timing>[] = [];
  for (let count = 0; count < 1000; count++) {
    running.push(once(target, body, path));
    if (count % 4 === 3) await new Promise((done) => setTimeout(done, 20));
  }
  return running;
}

function maxLagMs(data: Buffer): number {
  const now = performance.timeOrigin + performance.now();
  const sent = [...data.toString('latin1').matchAll(/@([\d.]+)@/g)].map(([, time]) => Number(time));
  return now - Math.min(...sent);
}

/**
 * Streams at a steady rate whether or not the answers came, as many users do. Answers the milliseconds until the
 * first byte of each, but for the first tenth of a second's, which have to connect. On bare sockets: an HTTP client
 * would take more of the machine than what is measured.
 */
export async function atRate(
  target: Target,
  body: string,
  perSecond: number,
  seconds: number,
): Promise<number[]> {
  const request = toRequest(target, body);
  const idle: Socket[] = [];
  const running: Promise<number>[] = [];
  const begun = performance.now();
  const connecting = Math.floor(perSecond / 10);
  for (let sent = 0; sent < perSecond * seconds + connecting; ) {
    const due = Math.floor(((performance.now() - begun) / 1000) * perSecond);
    for (; sent < due; sent++) running.push(firstByte(idle, target, request));
    await new Promise((done) => setTimeout(done, 1));
  }
  const times = (await Promise.all(running)).slice(connecting);
  for (const socket of idle) socket.destroy();
  return times;
}

function toRequest(target: Target, body: string, path = chatPath): string {
  const headers = {
    host: '127.0.0.1',
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    ...target.headers,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`;
}

const lastChunk = Buffer.from('\r\n0\r\n\r\n');

function firstByte(idle: Socket[], target: Target, request: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const begun = performance.now();
    const socket = idle.pop() ?? connect({ port: target.port, host: '127.0.0.1', noDelay: true });
    let firstMs = 0;
    function take(data: Buffer): void {
      if (firstMs === 0) {
        firstMs = performance.now() - begun;
        if (!data.subarray(0, 12).equals(okay)) reject(new Error(`${target.name}: ${data}`));
      }
      if (!data.subarray(-lastChunk.length).equals(lastChunk)) return;
      socket.off('data', take).off('error', reject);
      idle.push(socket);
      resolve(firstMs);
    }
    socket.on('data', take).on('error', reject).write(request);
  });
}

const okay = Buffer.from('HTTP/1.1 200');

export function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}
