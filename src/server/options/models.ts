// Converts the `models` section of the configuration into options of the catalog, the backends and the weights.

import { totalmem } from 'node:os';
import type { Config } from '#config/schema.ts';
import type { BackendSettings } from '#inference/backends/open.ts';
import { builtinModel } from '#inference/engines/local/builtin.ts';
import type { CatalogChange, CatalogSettings } from '#inference/models/catalog.ts';

type Models = Config['models'];

export function toCatalogSettings({ catalog, builtin_ids, aliases }: Models): CatalogSettings {
  const changes = Object.entries(catalog).map(([id, model]) => [id, toChange(model)] as const);
  return { builtinIds: builtin_ids, changes: new Map(changes), aliases: Object.entries(aliases) };
}

/** Contains only the members that are set: the others keep their known values. */
function toChange(model: Models['catalog'][string]): CatalogChange {
  const change = {
    ownedBy: model.owned_by,
    contextWindow: model.context_window,
    maxOutputTokens: model.max_output_tokens,
    vocabulary: model.vocabulary,
    price: model.price,
    contextFallback: model.context_fallback,
    continueStreams: model.continue_streams,
    fitMaxTokens: model.fit_max_tokens,
    thinkTags: model.think_tags,
    input: model.input,
    kind: model.kind,
    minDimensions: model.min_dimensions,
    listed: model.listed,
  };
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as CatalogChange;
}

export function toBackendSettings({ catalog, health }: Models): BackendSettings {
  return {
    specs: Object.entries(catalog).flatMap(([id, { backends = [] }]) =>
      backends.map((backend) => ({
        source: 'file' as const,
        model: id,
        name: backend.name,
        url: backend.url,
        apiKey: backend.api_key,
        upstreamModel: backend.model ?? id,
        server: backend.server,
        headers: backend.headers,
        weight: backend.weight,
        concurrency: backend.concurrency,
        timeouts: {
          connectMs: backend.connect_ms,
          firstByteMs: backend.first_byte_ms,
          idleMs: backend.idle_ms,
        },
        continueStreams: null,
      })),
    ),
    health: {
      ejectAfter: health.eject_after,
      ejectMs: health.eject_seconds * 1000,
      maxEjectMs: health.max_eject_seconds * 1000,
    },
    probeMs: health.probe_seconds * 1000,
  };
}

export const toWeightsOptions = ({ data_dir: dataDir, models }: Config) => ({
  dataDir,
  hubUrl: models.hub_url,
  hubToken: models.hub_token,
  concurrency: models.pull_concurrency,
  diskReserveBytes: models.disk_reserve_gib * 2 ** 30,
});

/** Null if it is turned off. */
export function toStandIn({ inference: { stand_in: path } }: Config) {
  if (path === false) return null;
  return typeof path !== 'string'
    ? builtinModel
    : { name: 'stand-in', modelPath: path, standIn: true };
}

/** What every local model is run with. */
export const toLocalOptions = ({ inference }: Config) => ({
  idleMs: inference.idle_minutes * 60_000,
  threads: inference.threads,
});

/** Bytes for all local models together. */
export const toMemoryLimit = ({ inference }: Config) =>
  inference.memory_limit_gib === null ? totalmem() * 0.75 : inference.memory_limit_gib * 2 ** 30;
