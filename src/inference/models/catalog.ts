// The models on offer: the ids clients send, and what is known of the model behind each. The built-in list,
// as the configuration changes and extends it; replaced as a whole when that is read again.

import type { Model } from '#inference/schema.ts';
import { builtinModels, type CatalogEntry, type Price } from './builtin-models.ts';

export type { CatalogEntry, Price };

/** What an operator says about one id. What is not given stays as the built-in list has it. */
export type CatalogChange = Partial<Omit<CatalogEntry, 'id' | 'created' | 'weights'>>;

export interface CatalogSettings {
  /** False: only the ids of `changes` are on offer. */
  readonly builtinIds: boolean;
  readonly changes: ReadonlyMap<string, CatalogChange>;
}

export interface Catalog {
  /** What GET /v1/models shows. The same array until the catalog changes. */
  list(): readonly CatalogEntry[];
  /** Also the ids that answer without being listed. */
  all(): readonly CatalogEntry[];
  find(id: string): CatalogEntry | undefined;
  replace(settings: CatalogSettings): void;
}

const nothingChanged: CatalogSettings = { builtinIds: true, changes: new Map() };

export function createCatalog(settings: CatalogSettings = nothingChanged): Catalog {
  let all = toEntries(settings);
  let listed = all.filter((entry) => entry.listed);
  let byId = new Map(all.map((entry) => [entry.id, entry]));
  return {
    list: () => listed,
    all: () => all,
    find: (id) => byId.get(id),
    replace(changed) {
      all = toEntries(changed);
      listed = all.filter((entry) => entry.listed);
      byId = new Map(all.map((entry) => [entry.id, entry]));
    },
  };
}

/** Built-in ids keep their order, new ones come after them in the order of the file. */
function toEntries({ builtinIds, changes }: CatalogSettings): readonly CatalogEntry[] {
  const builtin = builtinModels.filter(({ id }) => builtinIds || changes.has(id));
  const known = new Set(builtin.map(({ id }) => id));
  const added = [...changes.keys()].filter((id) => !known.has(id)).map(newEntry);
  return [...builtin, ...added].map((entry) => ({ ...entry, ...changes.get(entry.id) }));
}

/** Nothing says when a configured model was made, and clients want one number that stays: 2026-01-01. */
const createdByOperator = 1_767_225_600;

const newEntry = (id: string): CatalogEntry => ({
  id,
  ownedBy: 'operator',
  created: createdByOperator,
  contextWindow: 131_072,
  maxOutputTokens: null,
  vocabulary: 'other',
  price: { input: 0, output: 0 },
  weights: { gguf: null, safetensors: null },
  contextFallback: null,
  continueStreams: null,
  listed: true,
});

export const toModel = ({ id, created, ownedBy }: CatalogEntry): Model => ({
  id,
  object: 'model',
  created,
  owned_by: ownedBy,
});
