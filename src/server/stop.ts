// How a server stops: it accepts no new work, requests in progress may finish up to the drain time, and then
// the parts close in the reverse order of their dependencies.

import type { FastifyInstance } from 'fastify';
import type { Parts } from '#server/parts/parts.ts';

/** Time for the last bytes of requests that were cut off to reach their clients. */
const lastWriteMs = 300;

export async function stopParts(parts: Parts, app: FastifyInstance): Promise<void> {
  const { core, accounts, usage, models, serving, batches, liveDeployments, cloud, dashboard } =
    parts;
  const { log } = core;
  await models.weights.stop();
  const drainMs = core.config.server.drain_seconds * 1000;
  const batchesStopped = batches.runner.stop(drainMs);
  const background = serving.responses.background.drain(drainMs);
  await drain(app, { drainMs, cutOff: () => void stopServing(parts) });
  await batchesStopped;
  await background;
  await stopServing(parts);
  await liveDeployments.close();
  await usage.rows.stop();
  await models.tokens.close();
  await models.grammars.close();
  await models.responses.close();
  await serving.bodies.close();
  await serving.traces
    ?.close()
    .catch((error) => log.warn({ err: error }, 'the last traces could not be sent'));
  await core.shared.close();
  await cloud.reconciler.stop();
  await cloud.hosts.close();
  dashboard.stop();
  await accounts.apiKeys
    .flushLastUsed()
    .catch((error) => log.error({ err: error }, 'the last use of some keys was not saved'));
  await core.close();
}

async function stopServing({ core, models, serving }: Parts): Promise<void> {
  serving.router.close();
  await models.backends
    .close()
    .catch((error) => core.log.error({ err: error }, 'a backend did not close'));
}

/** Resolves when the last connection is closed. `cutOff` must fail every request that still runs. */
async function drain(
  app: FastifyInstance,
  { drainMs, cutOff }: { drainMs: number; cutOff: () => void },
): Promise<void> {
  const { server } = app;
  // A connection that becomes idle after its last response would otherwise stay open until the end.
  const closeIdle = setInterval(() => server.closeIdleConnections(), 100);
  const cut = setTimeout(cutOff, drainMs);
  const close = setTimeout(() => server.closeAllConnections(), drainMs + lastWriteMs);
  await app.close();
  clearInterval(closeIdle);
  clearTimeout(cut);
  clearTimeout(close);
}
