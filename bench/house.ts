// GET /v1/models with authentication against the bare route, alternating in one run; idle memory; time
// from the command to listening.

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import autocannon from 'autocannon';

const key = 'bench-key-that-is-long-enough-123456';
const rounds = Number(process.argv[2] ?? 5);
const seconds = 4;
const ours = { name: 'millrace', port: 18_081 };
const bare = { name: 'bare Fastify', port: 18_082 };
const dataDir = mkdtempSync(join(tmpdir(), 'millrace-bench-'));
const root = join(import.meta.dirname, '..');

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

function startOurs(): ChildProcess {
  return spawn(
    join(root, 'millrace'),
    ['serve', '--port', String(ours.port), '--data-dir', dataDir],
    {
      env: { ...process.env, MILLRACE_API_KEY: key },
      stdio: 'ignore',
    },
  );
}

async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < 2000; tries++) {
    try {
      await fetch(`http://127.0.0.1:${port}/v1/models`);
      return;
    } catch {
      await new Promise((done) => setTimeout(done, 5));
    }
  }
  throw new Error(`nothing listens on ${port}`);
}

async function load({ port }: { port: number }): Promise<number> {
  const result = await autocannon({
    url: `http://127.0.0.1:${port}/v1/models`,
    headers: { authorization: `Bearer ${key}` },
    connections: 32,
    duration: seconds,
  });
  if (result.non2xx > 0) throw new Error(`${result.non2xx} answers were not 2xx`);
  return result.requests.average;
}

async function end(child: ChildProcess): Promise<void> {
  const gone = new Promise((done) => child.once('exit', done));
  child.kill('SIGTERM');
  await gone;
}

const starts: number[] = [];
for (let round = 0; round < 3; round++) {
  const begun = performance.now();
  const child = startOurs();
  await listening(ours.port);
  starts.push(performance.now() - begun);
  await end(child);
}

const server = startOurs();
await listening(ours.port);
await new Promise((done) => setTimeout(done, 3000));
const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
const idleMb = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
const yardstick = spawn(process.execPath, [
  join(import.meta.dirname, 'bare-server.ts'),
  String(bare.port),
]);
await listening(bare.port);
await load(ours);
await load(bare);
const pairs: [number, number][] = [];
for (let round = 0; round < rounds; round++) pairs.push([await load(ours), await load(bare)]);
await end(server);
await end(yardstick);
rmSync(dataDir, { recursive: true, force: true });

console.log(
  `start to listening    ${starts.map((ms) => Math.round(ms)).join(', ')} ms (goal: 1500)`,
);
console.log(`idle resident memory  ${idleMb.toFixed(0)} MB (goal: 120)`);
console.log(`millrace              ${median(pairs.map(([one]) => one)).toFixed(0)} requests/s`);
console.log(
  `bare Fastify          ${median(pairs.map(([, other]) => other)).toFixed(0)} requests/s`,
);
console.log(
  `ratio, median         ${median(pairs.map(([one, other]) => one / other)).toFixed(2)} (goal: 0.7)`,
);
