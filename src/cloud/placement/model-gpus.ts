// GPUs of this server's host that its models use. They are taken as launches take theirs, under the same lock, so a GPU
// belongs to a machine or to the models, never to both.

import type { Database } from '#db/tables/tables.ts';
import { countAllocated } from './capacity.ts';
import { lockLaunches } from './lock-launches.ts';
import type { Place } from './place.ts';
import { isFree } from './placement.ts';

export interface ModelGpus {
  /**
   * Takes the free GPU with the most memory, and returns its address. Returns null if machines have all of them, and
   * undefined if the host has none that machines could get.
   */
  take(): Promise<string | null | undefined>;
  /** Gives all of them back. */
  giveBack(): Promise<void>;
}

export function createModelGpus(
  db: Database,
  hostId: string,
  places: () => readonly Place[],
): ModelGpus {
  return {
    async take() {
      const place = places().find((candidate) => candidate.hostId === hostId);
      if (place === undefined || place.gpus.length === 0) return undefined;
      return db.transaction().execute(async (tx) => {
        await lockLaunches(tx);
        const { gpus } = (await countAllocated(tx)).on(place);
        const [best] = place.gpus
          .filter(({ address }) => isFree(address, gpus))
          .sort((one, other) => other.memoryGib - one.memoryGib);
        if (best === undefined) return null;
        await tx
          .insertInto('model_gpus')
          .values({ host_id: hostId, address: best.address })
          .execute();
        return best.address;
      });
    },
    async giveBack() {
      await db.deleteFrom('model_gpus').where('host_id', '=', hostId).execute();
    },
  };
}
