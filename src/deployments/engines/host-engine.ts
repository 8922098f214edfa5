// Starts an engine as a process beside the server, with a folder and a port of its own.

import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { HostMeter } from '#deployments/stats/host-meter.ts';
import type { Clock } from '#lib/clock.ts';
import { type Engine, type EngineOrder, toFailure } from './engine.ts';
import { startEngineProcess } from './engine-process.ts';
import { ownProgram, recipes } from './recipes.ts';

export interface HostEngineParts {
  readonly clock: Clock;
  /** The folder of all replicas. */
  readonly folder: string;
  /** The home directory of all engines, which outlives them: they keep there what they download. */
  readonly home: string;
  readonly meter: HostMeter;
}

export async function startHostEngine(parts: HostEngineParts, order: EngineOrder): Promise<Engine> {
  const { spec } = order;
  const recipe = recipes[spec.engine];
  const folder = join(parts.folder, order.id);
  const key = randomBytes(24).toString('hex');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await mkdir(parts.home, { recursive: true, mode: 0o700 });
  const port = await findFreePort();
  const place = { port, key, millrace: ownProgram };
  const {
    pid = 0,
    ended,
    log,
    ...process
  } = startEngineProcess(parts.clock, {
    command: recipe.toCommand(spec, place),
    env: { ...spec.env, ...recipe.toEnvironment(spec, place) },
    folder,
    home: parts.home,
  });
  const stop = async () => {
    await process.stop();
    await rm(folder, { recursive: true, force: true }).catch(() => {});
  };
  const failed = ended.then((sentence) => toFailure(sentence));
  const stats = () => parts.meter.measure(pid, spec.env);
  return { port, key, phase: 'starting', ended: failed, log, stats, stop, leave: stop };
}

/** Another process may take the port before the engine does. Then the engine fails, and the next start has another. */
function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
