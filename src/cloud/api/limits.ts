// Rate limits of an account (seed 8): one request per second, one launch per ten seconds. Requests of the
// dashboard are not limited.

import type { FastifyInstance } from 'fastify';
import { principalOf } from '#accounts/authenticate.ts';
import { rateLimited } from '#lib/errors.ts';
import type { Rate, RateLimiter } from '#lib/limits/rate-limit.ts';

export interface CloudLimits {
  /** Null if limits are off. */
  requests: Rate | null;
  launches: Rate | null;
}

export function limitRequests(
  app: FastifyInstance,
  limiter: RateLimiter,
  limits: CloudLimits,
): void {
  app.addHook('onRequest', async (request) => {
    if (request.is404) return;
    const principal = principalOf(request);
    if (principal.kind === 'session') return;
    const { accountId } = principal;
    const isLaunch = request.routeOptions.url?.endsWith('/instance-operations/launch') ?? false;
    const waitMs =
      (limits.requests && (await limiter.take(`requests:${accountId}`, limits.requests))) ||
      (isLaunch &&
        limits.launches &&
        (await limiter.take(`launches:${accountId}`, limits.launches))) ||
      0;
    if (waitMs === 0) return;
    throw rateLimited('Too many requests: this account is over its request rate.', waitMs);
  });
}
