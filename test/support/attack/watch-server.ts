// A worker that requests a server's /healthz every ten milliseconds and reads the peak memory of its process. The
// first message to it ends the watch: it takes a last sample and posts the result.

import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';

export interface Watched {
  /** Longest time that /healthz took. */
  readonly worstMs: number;
  readonly peakMb: number;
  /** Whether the last /healthz was answered with 200. */
  readonly isUp: boolean;
}

const { url, pid } = workerData as { url: string; pid: number };
let [worstMs, peakMb, isUp, isOver] = [0, 0, true, false];

parentPort?.once('message', () => {
  isOver = true;
});
// The first request opens the connection and is not timed.
await fetch(`${url}/healthz`);
while (!isOver) {
  await sample();
  await sleep(10);
}
await sample();
parentPort?.postMessage({ worstMs, peakMb, isUp } satisfies Watched);
process.exit(0);

async function sample(): Promise<void> {
  const begun = performance.now();
  isUp = await fetch(`${url}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  );
  worstMs = Math.max(worstMs, performance.now() - begun);
  peakMb = Math.max(peakMb, readPeakMb());
}

function readPeakMb(): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
  } catch {
    return 0;
  }
}
