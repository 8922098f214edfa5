// Says whether a model fits the memory of a place before anything starts there.

import type { Offer } from '#cloud/placement/instance-types.ts';
import type { Place } from '#cloud/placement/place.ts';
import { findRepository, sourceOf } from '#deployments/engines/engine-weights.ts';
import { doesNotFit } from '#deployments/errors.ts';
import type { FitsView } from '#deployments/schema.ts';
import type { DeploymentSpec } from '#deployments/spec.ts';
import type { Catalog } from '#inference/models/catalog.ts';
import { findStored } from '#inference/weights/selection.ts';
import type { Store } from '#inference/weights/store.ts';
import { findKnownModel } from './known-models.ts';
import {
  describeNeed,
  type MemoryNeed,
  type MemoryPlace,
  toMemoryNeed,
  toUsableBytes,
} from './memory.ts';
import { findModelShape } from './model-shapes.ts';

type Wanted = Pick<DeploymentSpec, 'model' | 'engine' | 'source' | 'args' | 'target'>;

export interface Fits {
  /** What the model needs, and whether each place has it. */
  estimate(wanted: Wanted): Promise<FitsView>;
  /** Throws a Refusal if the model does not fit the place. What is not known fits. */
  check(spec: DeploymentSpec): Promise<void>;
}

const gib = 2 ** 30;
const toRoundGib = (bytes: number) => Math.round((bytes / gib) * 10) / 10;

export function createFits(
  catalog: Catalog,
  store: Pick<Store, 'list'>,
  places: () => readonly MemoryPlace[],
): Fits {
  /** The weights that are loaded; null if the engine brings its own. */
  function toSource(wanted: Wanted): string | null {
    const { model, engine } = wanted;
    const isOwn = engine === 'builtin' || engine === 'command';
    return sourceOf(catalog, wanted) ?? (isOwn ? null : model);
  }

  async function findNeed(wanted: Wanted): Promise<MemoryNeed | null> {
    const source = toSource(wanted);
    if (source === null) return null;
    const repository = findRepository(source, wanted.engine);
    const stored =
      repository && findStored(repository.source, repository.format, await store.list());
    const shape = await findModelShape(stored?.path ?? source);
    return shape === undefined ? null : toMemoryNeed(shape, wanted);
  }

  return {
    async estimate(wanted) {
      const source = toSource(wanted);
      const known = source === null ? undefined : findKnownModel(source);
      const need = await findNeed(wanted);
      return {
        model: wanted.model,
        source,
        parameters_billions: known?.billions ?? null,
        licence: known?.licence ?? null,
        need: need && toNeedView(need),
        places: need === null ? [] : places().map((place) => toPlaceView(place, wanted, need)),
      };
    },
    async check(spec) {
      const { check_memory, runs_on } = spec;
      const place = places().find(({ name }) => name === runs_on);
      if (!check_memory || place === undefined) return;
      const need = await findNeed(spec);
      if (need === null) return;
      const usable = toUsableBytes(place, spec);
      if (need.totalBytes > usable) throw doesNotFit(spec.model, describeNeed(need, usable));
    },
  };
}

const toNeedView = (need: MemoryNeed): FitsView['need'] => ({
  total_gib: toRoundGib(need.totalBytes),
  weights_gib: toRoundGib(need.weightBytes),
  cache_gib: toRoundGib(need.cacheBytes),
  overhead_gib: toRoundGib(need.overheadBytes),
  requests: need.requests,
  tokens: need.tokens,
});

function toPlaceView(
  place: MemoryPlace,
  wanted: Wanted,
  need: MemoryNeed,
): FitsView['places'][number] {
  const usable = toUsableBytes(place, wanted);
  return {
    name: place.name,
    usable_gib: toRoundGib(usable),
    fits: need.totalBytes <= usable,
    summary: `needs ${describeNeed(need, usable)}`,
  };
}

/** The computer of the server, if it is known, and all instance types that can be launched. */
export function toMemoryPlaces(
  own: readonly Place[],
  offers: readonly Offer[],
): readonly MemoryPlace[] {
  const host = own.map(({ gpus, memoryGib }) => ({
    name: 'host',
    gpus: gpus.map((gpu) => gpu.memoryGib * gib),
    memoryBytes: memoryGib * gib,
  }));
  const types = offers
    .filter(({ pool }) => pool !== null)
    .map(({ type, memoryGib }) => {
      const gpuGib = Number(/\((\d+) GB/.exec(type.gpu_description)?.[1] ?? 0);
      const gpus = Array.from({ length: type.specs.gpus }, () => gpuGib * gib);
      return { name: type.name, gpus, memoryBytes: memoryGib * gib };
    });
  return [...host.slice(0, 1), ...types];
}
