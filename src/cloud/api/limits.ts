// Rate limits of an account (seed 8): one request per second, one launch per ten seconds, and as many at once as the
// operator allows. Requests of the dashboard are not limited, and a launch that is refused does not count as one.

import type { FastifyInstance, FastifyRequest } from 'fastify';
import { principalOf } from '#accounts/authenticate.ts';
import { rateLimited } from '#lib/errors.ts';
import type { Rate, RateLimiter } from '#lib/limits/rate-limit.ts';

export interface CloudLimits {
  /** Null if limits are off. */
  requests: Rate | null;
  launches: Rate | null;
}

const overRequests =
  'Too many requests: this account is over its request rate. Its operator sets it with cloud.requests_per_second and cloud.request_burst.';

const overLaunches = ({ burst, intervalMs }: Rate) =>
  `Too many launches: this account may launch ${Math.floor(burst)} at once and one every ${intervalMs / 1000} s. Its operator sets this with cloud.launch_burst and cloud.launch_interval_seconds.`;

export function limitRequests(
  app: FastifyInstance,
  limiter: RateLimiter,
  limits: CloudLimits,
): void {
  /** Launches that took their unit. */
  const launching = new WeakSet<FastifyRequest>();
  const { requests, launches } = limits;

  app.addHook('onRequest', async (request) => {
    if (request.is404) return;
    const principal = principalOf(request);
    if (principal.kind === 'session') return;
    const { accountId } = principal;
    const take = async (rate: Rate | null, key: string, explain: (rate: Rate) => string) => {
      const waitMs = rate === null ? 0 : await limiter.take(key, rate);
      if (rate !== null && waitMs > 0) throw rateLimited(explain(rate), waitMs);
    };
    await take(requests, `requests:${accountId}`, () => overRequests);
    if (!request.routeOptions.url?.endsWith('/instance-operations/launch')) return;
    await take(launches, `launches:${accountId}`, overLaunches);
    launching.add(request);
  });

  // A client that corrects a refused launch need not wait for the next one.
  app.addHook('onSend', async (request, { statusCode }) => {
    if (launches === null || !launching.has(request) || statusCode < 400 || statusCode > 499)
      return;
    await limiter.giveBack(`launches:${principalOf(request).accountId}`, launches);
  });
}
