// Finds the weights that a deployment names, and fetches them if they are on the hub: once for this computer, before the
// first engine starts. An engine gets a path, unless only the engine understands its source.

import { stat } from 'node:fs/promises';
import { basename, isAbsolute } from 'node:path';
import { weightsFolder } from '#cloud/drivers/driver.ts';
import type { Stored } from '#deployments/ground/rows.ts';
import type { DeploymentSpec } from '#deployments/ground/spec.ts';
import type { Catalog } from '#inference/models/catalog.ts';
import { parseSource, type Source } from '#inference/weights/choose.ts';
import type { Fetches } from '#inference/weights/fetches.ts';
import { type Candidate, type Format, findNamed } from '#inference/weights/selection.ts';
import type { Store } from '#inference/weights/store.ts';
import type { EngineOrder, StartWatch } from './engine.ts';

export interface Located {
  /** Its source is a path that the engine can open. */
  readonly spec: DeploymentSpec;
  /** The file or folder on this computer that the machine must see; null if there is none. */
  readonly mount: string | null;
}

export interface EngineWeights {
  /** Rejects with a sentence if the weights can't be fetched. */
  locate(order: EngineOrder, watch: StartWatch): Promise<Located>;
  /** Where the weights of the deployments are on this computer, as far as they are there. */
  pathsOf(deployments: readonly Stored[]): Promise<readonly string[]>;
  /** The deployments that use weights, by the weights' name. */
  usersOf(
    deployments: readonly Stored[],
    candidates: readonly Candidate[],
  ): ReadonlyMap<string, readonly Stored[]>;
}

export interface EngineWeightParts {
  readonly catalog: Catalog;
  readonly store: Pick<Store, 'list'>;
  readonly fetches: Fetches;
  /** Throws if the model does not fit: only what was fetched says how much it needs. */
  checkMemory(spec: DeploymentSpec): Promise<void>;
}

type Sought = Pick<DeploymentSpec, 'engine' | 'source' | 'model'>;

/** The weights that the engine loads; null if it brings its own. */
export function sourceOf(catalog: Catalog, { engine, source, model }: Sought): string | null {
  if (source !== null || (engine !== 'vllm' && engine !== 'sglang')) return source;
  return catalog.findById(model)?.weights.safetensors ?? model;
}

/** What to fetch from the hub; undefined if the source is a path, or something that only the engine understands. */
export function findRepository(
  source: string,
  engine: DeploymentSpec['engine'],
): { readonly source: Source; readonly format: Format } | undefined {
  if (isAbsolute(source)) return undefined;
  try {
    const parsed = parseSource(source);
    const isGguf = engine === 'llama-server' || engine === 'builtin';
    const namesFile = parsed.file !== null || parsed.quant !== null;
    return { source: parsed, format: isGguf || namesFile ? 'gguf' : 'safetensors' };
  } catch {
    return undefined;
  }
}

export function createEngineWeights(parts: EngineWeightParts): EngineWeights {
  const { catalog, store, fetches, checkMemory } = parts;

  async function findPath(order: EngineOrder, watch: StartWatch): Promise<string | null> {
    const { spec, deployment } = order;
    const source = sourceOf(catalog, spec);
    if (source === null || isAbsolute(source)) return source;
    const repository = findRepository(source, spec.engine);
    if (repository === undefined) return null;
    const token = spec.env.HF_TOKEN ?? null;
    const wanted = { accountId: deployment.accountId, ...repository, token };
    const { path } = await fetches.provide(wanted, watch);
    await checkMemory(spec);
    return path;
  }

  async function locate(order: EngineOrder, watch: StartWatch): Promise<Located> {
    const { spec } = order;
    const path = await findPath(order, watch);
    if (path === null) return { spec, mount: null };
    if (spec.runs_on === 'host') return { spec: { ...spec, source: path }, mount: null };
    const found = await stat(path).catch(() => null);
    // A path that is not on this computer is one inside the machine.
    if (found === null) return { spec, mount: null };
    const inside = found.isDirectory() ? weightsFolder : `${weightsFolder}/${basename(path)}`;
    return { spec: { ...spec, source: inside }, mount: path };
  }

  function findWeights<One extends Candidate>(
    { spec }: Stored,
    candidates: readonly One[],
  ): One | undefined {
    const source = sourceOf(catalog, spec);
    const repository = source === null ? undefined : findRepository(source, spec.engine);
    return repository && findNamed(repository.source, repository.format, candidates);
  }

  return {
    locate,
    async pathsOf(deployments) {
      const stored = (await store.list()).filter(({ isWhole }) => isWhole);
      return deployments.flatMap((one) => findWeights(one, stored)?.path ?? one.spec.source ?? []);
    },
    usersOf: (deployments, candidates) =>
      Map.groupBy(deployments, (one) => findWeights(one, candidates)?.name ?? ''),
  };
}
