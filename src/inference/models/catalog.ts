// The catalog of models: the ids that clients send, and the properties of the model behind each. It is the built-in
// list as changed and extended by the configuration, and is replaced as a whole on reload.

import type { Model } from '#inference/schema.ts';
import { Refusal } from '#lib/errors.ts';
import { nearest } from '#lib/text/nearest.ts';
import { builtinModels, type CatalogEntry, entryDefaults, type Price } from './builtin-models.ts';

export type { CatalogEntry, Price };

/** An operator's settings for one id. Members that are left out keep the built-in value. */
export type CatalogChange = Partial<Omit<CatalogEntry, 'id' | 'created' | 'weights'>>;

export interface CatalogSettings {
  /** False if only the ids in `changes` are available. */
  readonly builtinIds: boolean;
  readonly changes: ReadonlyMap<string, CatalogChange>;
  /** None if absent. Each leads to an id. */
  readonly aliases?: Aliases;
}

export interface Catalog {
  /** The models that GET /v1/models returns. The same array until the catalog changes. */
  list(): readonly CatalogEntry[];
  /** All models, including those that are not listed. */
  all(): readonly CatalogEntry[];
  /** The model with this id or, if there is none, the one that an alias stands for. */
  find(name: string): CatalogEntry | undefined;
  /** Aliases don't count. */
  findById(id: string): CatalogEntry | undefined;
  /** The patterns that lead to a model. */
  aliasesOf(id: string): string[];
  replace(settings: CatalogSettings): void;
}

const nothingChanged: CatalogSettings = { builtinIds: true, changes: new Map() };

export function createCatalog(settings: CatalogSettings = nothingChanged): Catalog {
  let all = toEntries(settings);
  let listed = all.filter((entry) => entry.listed);
  let byId = new Map(all.map((entry) => [entry.id, entry]));
  let aliases = settings.aliases ?? [];
  return {
    list: () => listed,
    all: () => all,
    find: (name) => byId.get(name) ?? byId.get(findAlias(aliases, name) ?? ''),
    findById: (id) => byId.get(id),
    aliasesOf: (id) => aliases.filter(([, to]) => to === id).map(([pattern]) => pattern),
    replace(changed) {
      all = toEntries(changed);
      listed = all.filter((entry) => entry.listed);
      byId = new Map(all.map((entry) => [entry.id, entry]));
      aliases = changed.aliases ?? [];
    },
  };
}

/** The model with this id; aliases don't count. Throws a Refusal that suggests the nearest id. */
export function getModel(
  catalog: Catalog,
  id: string,
  {
    code = 'not_found',
    param = 'model',
  }: { code?: 'not_found' | 'invalid_body'; param?: string } = {},
): CatalogEntry {
  const entry = catalog.findById(id);
  if (entry !== undefined) return entry;
  const match = nearest(
    id,
    catalog.all().map((one) => one.id),
  );
  throw new Refusal(
    code,
    `There is no model ${JSON.stringify(id.slice(0, 100))} here.${match ? ` Did you mean ${match}?` : ''} ` +
      'To add an id, write it into the configuration file, under models.catalog, and send the server SIGHUP.',
    { param },
  );
}

/** Built-in ids keep their order. New ones follow in the order of the configuration file. */
function toEntries({ builtinIds, changes }: CatalogSettings): readonly CatalogEntry[] {
  const builtin = builtinModels.filter(({ id }) => builtinIds || changes.has(id));
  const known = new Set(builtin.map(({ id }) => id));
  const added = [...changes.keys()].filter((id) => !known.has(id)).map(newEntry);
  return [...builtin, ...added].map((entry) => ({ ...entry, ...changes.get(entry.id) }));
}

/** 2026-01-01. A configured model has no known creation time, and clients expect one that does not change. */
const createdByOperator = 1_767_225_600;

const newEntry = (id: string): CatalogEntry => ({
  id,
  ownedBy: 'operator',
  created: createdByOperator,
  price: { input: 0, output: 0 },
  weights: { gguf: null, safetensors: null },
  ...entryDefaults,
});

export const toModel = ({ id, created, ownedBy }: CatalogEntry): Model => ({
  id,
  object: 'model',
  created,
  owned_by: ownedBy,
});

/** Patterns in the order of the configuration, with the id of the model that each stands for. `*` is any text. */
type Aliases = readonly (readonly [pattern: string, to: string])[];

/** The model of the first pattern that matches. */
const findAlias = (aliases: Aliases, name: string): string | undefined =>
  aliases.find(([pattern]) => matches(pattern, name))?.[1];

/** Takes each text between two stars where it first occurs, so that no pattern is slow. */
function matches(pattern: string, name: string): boolean {
  const [first = '', ...parts] = pattern.split('*');
  const last = parts.pop();
  if (last === undefined) return name === pattern;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of parts) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}
