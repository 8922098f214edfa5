// The bounds of request bodies of a configuration, and what holds large ones to them.

import type { RequestLimiter } from '#accounts/limits/request-limiter.ts';
import type { Config } from '#config/schema.ts';
import { BodyRoom } from '#http/body/room.ts';
import { createBodyThread } from '#inference/api/body-thread.ts';
import { createLargeBodies } from '#inference/api/large-bodies.ts';
import type { Clock } from '#lib/clock.ts';
import { toRoomBounds } from '#server/options/limits.ts';

export function openBodies(config: Config, clock: Clock, limits: RequestLimiter) {
  const maxBodyBytes = config.inference.max_body_mib * 2 ** 20;
  const maxBodyValues = config.inference.max_body_values;
  /** Shared by all APIs. */
  const room = new BodyRoom(toRoomBounds(config));
  const thread = createBodyThread(clock, { maxBytes: maxBodyBytes, maxValues: maxBodyValues });
  const largeBodies = createLargeBodies(limits, room, thread);
  return {
    room,
    inference: { maxBodyBytes, maxBodyValues, largeBodies },
    close: () => thread.close(),
  };
}
