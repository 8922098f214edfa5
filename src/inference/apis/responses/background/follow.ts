// Sends the events of a background response to a client that follows it, from any of its events on: those in the
// database at once, and new ones as its server writes them, which may be another one.

import type { Cancellation } from '#http/client-disconnect.ts';
import type { Follow, SendEvents } from '#inference/apis/endpoint.ts';
import type { ResponseStore } from '#inference/apis/responses/stored/store.ts';
import {
  eventsGone,
  notInBackground,
  tooManyFollowers,
} from '#inference/apis/responses/stored/stored-errors.ts';
import { KeyCounts } from '#lib/memory/key-counts.ts';
import type { BackgroundResponses } from './background.ts';
import { countEvents, type RunRows } from './run-rows.ts';

/** How often the database is asked for events that another server writes. */
const pollMs = 500;
/** Followers of one account on this server. */
const maxFollowers = 100;

/** One of the followers that an account may have. */
export interface FollowerPlace {
  /** May be called again. */
  release(): void;
}

export interface Followers {
  /** Throws if the account has too many followers. */
  reserve(accountId: string): FollowerPlace;
  /**
   * Throws if the response has no events to follow. The result must be called, and ends with the response. Takes over
   * the place.
   */
  open(accountId: string, id: string, after: number, place?: FollowerPlace): Promise<Follow>;
}

export function createFollowers(
  store: ResponseStore,
  rows: RunRows,
  background: BackgroundResponses,
): Followers {
  const counts = new KeyCounts();

  async function follow(id: string, after: number, send: SendEvents, signal: Cancellation) {
    let last = after;
    while (!signal.aborted) {
      // Read before the events, so that none are written in between that would be missed.
      const isRunning = await rows.isRunning(id);
      const batch = await rows.readEvents(id, last);
      if (batch !== undefined) {
        last = batch.first + countEvents(batch.events) - 1;
        await send(batch.events);
      } else if (isRunning) await background.waitForEvents(id, pollMs);
      else return;
    }
  }

  function reserve(accountId: string): FollowerPlace {
    if (counts.get(accountId) >= maxFollowers) throw tooManyFollowers(maxFollowers);
    counts.add(accountId);
    let isHeld = true;
    return {
      release() {
        if (isHeld) counts.remove(accountId);
        isHeld = false;
      },
    };
  }

  async function check(accountId: string, id: string): Promise<void> {
    const { background: isBackground } = await store.get(accountId, id);
    if (!isBackground) throw notInBackground(id, 'streamed');
    if (!(await rows.isRunning(id)) && !(await rows.hasEvents(id))) throw eventsGone(id);
  }

  return {
    reserve,
    async open(accountId, id, after, place = reserve(accountId)) {
      try {
        await check(accountId, id);
      } catch (error) {
        place.release();
        throw error;
      }
      return async (send, signal) => {
        try {
          await follow(id, after, send, signal);
        } finally {
          place.release();
        }
      };
    },
  };
}
