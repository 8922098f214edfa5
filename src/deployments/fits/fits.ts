// Says whether a model fits the memory of a place before anything starts there.

import type { Offer } from '#cloud/placement/instance-types.ts';
import type { Place } from '#cloud/placement/place.ts';
import { hasProgram } from '#deployments/engines/engine-files.ts';
import { findRepository, sourceOf } from '#deployments/engines/engine-weights.ts';
import { doesNotFit } from '#deployments/ground/errors.ts';
import type { FitsView } from '#deployments/ground/schema.ts';
import type { DeploymentSpec } from '#deployments/ground/spec.ts';
import type { Catalog } from '#inference/models/catalog.ts';
import { findStored } from '#inference/weights/selection.ts';
import type { Store } from '#inference/weights/store.ts';
import { findKnownModel } from './known-models.ts';
import {
  describeNeed,
  type MemoryNeed,
  type MemoryPlace,
  toFreeBytes,
  toMemoryNeed,
  toUsable,
} from './memory.ts';
import { findModelShape } from './model-shapes.ts';

type Wanted = Pick<DeploymentSpec, 'model' | 'engine' | 'source' | 'args' | 'target'>;

export interface Fits {
  /** What the model needs, and whether each place has it. */
  estimate(wanted: Wanted): Promise<FitsView>;
  /** The engine that serves a model best on this server's computer, of those that are installed. */
  findOwnEngine(): Promise<DeploymentSpec['engine']>;
  /** Throws a Refusal if the model does not fit the place. What is not known fits. */
  check(spec: DeploymentSpec): Promise<void>;
}

const gib = 2 ** 30;
const toRoundGib = (bytes: number) => Math.round((bytes / gib) * 10) / 10;

export function createFits(
  catalog: Catalog,
  store: Pick<Store, 'list'>,
  places: () => Promise<readonly MemoryPlace[]>,
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
        places:
          need === null ? [] : (await places()).map((place) => toPlaceView(place, wanted, need)),
      };
    },
    async findOwnEngine() {
      const host = (await places()).find(({ name }) => name === 'host');
      const isInstalled = (engine: DeploymentSpec['engine']) =>
        hasProgram({ engine, program: null, source: null, env: {}, runs_on: 'host' });
      if ((host?.gpus.length ?? 0) > 0 && (await isInstalled('vllm'))) return 'vllm';
      return (await isInstalled('llama-server')) ? 'llama-server' : 'builtin';
    },
    async check(spec) {
      const need = spec.check_memory ? await findNeed(spec) : null;
      if (need === null) return;
      const place = (await places()).find(({ name }) => name === spec.runs_on);
      if (place === undefined) return;
      const usable = toUsable(place, spec);
      if (need.totalBytes > toFreeBytes(usable))
        throw doesNotFit(spec.model, describeNeed(need, usable));
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
  const usable = toUsable(place, wanted);
  return {
    name: place.name,
    usable_gib: toRoundGib(toFreeBytes(usable)),
    fits: need.totalBytes <= toFreeBytes(usable),
    summary: `needs ${describeNeed(need, usable)}`,
  };
}

/**
 * The computer of the server, if it is known, and all instance types that can be launched. `inUse` has the bytes of the
 * computer's GPUs that other programs use, by address.
 */
export function toMemoryPlaces(
  own: readonly Place[],
  offers: readonly Offer[],
  inUse: ReadonlyMap<string, number>,
): readonly MemoryPlace[] {
  const host = own.map(({ gpus, memoryGib }) => ({
    name: 'host',
    gpus: gpus.map((gpu) => ({
      bytes: gpu.memoryGib * gib,
      inUseBytes: inUse.get(gpu.address) ?? 0,
    })),
    memoryBytes: memoryGib * gib,
  }));
  const types = offers
    .filter(({ pool }) => pool !== null)
    .map(({ type, memoryGib }) => {
      const gpuGib = Number(/\((\d+) GB/.exec(type.gpu_description)?.[1] ?? 0);
      const gpu = { bytes: gpuGib * gib, inUseBytes: 0 };
      const gpus = Array.from({ length: type.specs.gpus }, () => gpu);
      return { name: type.name, gpus, memoryBytes: memoryGib * gib };
    });
  return [...host.slice(0, 1), ...types];
}
