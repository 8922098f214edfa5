// Admission and parsing of large bodies: the caller's limits are checked before the body is read, the body waits
// for memory, and a thread parses and checks it.

import type { FastifyRequest } from 'fastify';
import { principalOf } from '#accounts/authenticate.ts';
import type { Arrival, RequestLimiter } from '#accounts/limits/request-limiter.ts';
import type { LargeBodies } from '#http/body/bodies.ts';
import type { BodyRoom } from '#http/body/room.ts';
import { toCaller, toSharer } from '#inference/request.ts';
import { invalidJson } from '#lib/errors.ts';
import { BodyRefused, type BodyThread, type Prepared } from './body-thread.ts';

export function createLargeBodies(
  limits: RequestLimiter,
  room: BodyRoom,
  thread: BodyThread,
): LargeBodies {
  const arrivals = new WeakMap<FastifyRequest, Arrival>();

  async function parse(request: FastifyRequest, bytes: Buffer): Promise<Prepared> {
    const caller = toSharer(toCaller(principalOf(request)));
    const { url = '' } = request.routeOptions;
    const left = new AbortController();
    const leave = () => left.abort(invalidJson('its client has left'));
    const { socket } = request.raw;
    socket.once('close', leave);
    try {
      return await thread.parse({ caller, url, bytes }, left.signal);
    } catch (error) {
      // The usage row of a refused request needs the model.
      if (error instanceof BodyRefused) request.body = { model: error.model };
      throw error;
    } finally {
      socket.off('close', leave);
      // From here on, the limits count the request itself.
      arrivals.get(request)?.leave();
    }
  }

  return {
    async admit(request, bytes, signal) {
      const caller = toCaller(principalOf(request));
      const arrival = await limits.arrive(caller);
      arrivals.set(request, arrival);
      try {
        const lease = await room.enter(toSharer(caller), bytes, signal);
        return {
          shrink: lease.shrink,
          leave() {
            arrival.leave();
            lease.leave();
          },
        };
      } catch (error) {
        arrival.leave();
        throw error;
      }
    },
    parse,
  };
}
