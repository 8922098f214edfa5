// The dashboard's build for all servers of a test process. It is found, and built if there is none, with the first request
// for a page: most servers of tests show none.

import fastify from 'fastify';
import { createDashboardBuild, type DashboardBuild } from '#server/dashboard-build.ts';

export function createLazyBuild(): DashboardBuild & { end(): void } {
  let build: DashboardBuild | undefined;
  const get = () => {
    if (build === undefined) {
      build = createDashboardBuild(fastify().log);
      build.start();
    }
    return build;
  };
  return {
    find: () => get().find(),
    findHelp: () => get().findHelp(),
    hasFailed: () => get().hasFailed(),
    // A server that stops must not end the build that others wait for.
    start() {},
    stop() {},
    end: () => build?.stop(),
  };
}
