// Asks a server for /healthz every ten milliseconds, in a thread of its own, and reads the most memory its
// process has had.

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

export interface Watched {
  readonly worstMs: number;
  readonly peakMb: number;
  readonly isUp: boolean;
}

const { url, pid } = workerData as { url: string; pid: number };
let [worstMs, peakMb, isUp, isOver] = [0, 0, true, false];

parentPort?.once('message', () => {
  isOver = true;
});
// The first one opens the connection.
await fetch(`${url}/healthz`);
while (!isOver) {
  const begun = performance.now();
  isUp = await fetch(`${url}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  );
  worstMs = Math.max(worstMs, performance.now() - begun);
  peakMb = Math.max(peakMb, readPeakMb());
  await sleep(10);
}
parentPort?.postMessage({ worstMs, peakMb, isUp } satisfies Watched);
process.exit(0);

function readPeakMb(): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  } catch {
    return 0;
  }
}
