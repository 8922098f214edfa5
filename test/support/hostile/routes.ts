// The routes of a server, listed by the framework itself: no list of them can be out of date.

import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { FastifyInstance } from 'fastify';

/** Every route of the app that is started meanwhile, as `GET /v1/models`. */
export async function collectRoutes(start: () => Promise<void>): Promise<string[]> {
  const routes = new Set<string>();
  const watch = (message: unknown) => {
    const { fastify } = message as { fastify: FastifyInstance };
    fastify.addHook('onRoute', ({ method, url }) => {
      for (const one of [method].flat()) if (one !== 'HEAD') routes.add(`${one} ${url}`);
    });
  };
  subscribe('fastify.initialization', watch);
  await start().finally(() => unsubscribe('fastify.initialization', watch));
  return [...routes];
}
