// What a schema can't express about models: aliases of models that exist, fallbacks that exist and
// do not form a cycle, unique names of backends, and API keys that are in the environment.

import { builtinModels, standInNames } from '#inference/models/builtin-models.ts';
import { nearest } from '#lib/text/nearest.ts';
import type { PlaceOf } from './place.ts';
import type { Config } from './schema.ts';

type Models = Config['models'];

export function checkModels(models: Models, placeOf: PlaceOf): string[] {
  return [
    ...checkAliases(models, placeOf),
    ...checkFallbacks(models, placeOf),
    ...checkBackends(models, placeOf),
    ...checkEjection(models, placeOf),
  ];
}

/** Replaces `api_key_env` by the API key in that variable. Returns the problems. */
export function resolveApiKeys(
  { catalog }: Models,
  environment: Record<string, string | undefined>,
  placeOf: PlaceOf,
): string[] {
  return everyBackend(catalog).flatMap(({ backend, path, name }) => {
    if (backend.api_key_env === null) return [];
    const place = placeOf([...path, 'api_key_env']);
    if (backend.api_key !== null)
      return [`${place}: set either ${name}.api_key or its api_key_env, not both.`];
    const key = environment[backend.api_key_env];
    if (key === undefined || !/^[!-~]{1,4096}$/.test(key)) {
      return [
        `${place}: ${name}.api_key_env refers to ${backend.api_key_env}, which the environment does not set to an API key.`,
      ];
    }
    backend.api_key = key;
    return [];
  });
}

/** An alias leads to an id, never to another alias, so aliases can't form a cycle. */
function checkAliases({ catalog, builtin_ids, aliases }: Models, placeOf: PlaceOf): string[] {
  const builtin = builtin_ids ? builtinModels.map(({ id }) => id) : [];
  const ids = new Set([...builtin, ...Object.keys(catalog)]);
  return Object.entries(aliases).flatMap(([pattern, to]) => {
    if (ids.has(to)) return [];
    const match = nearest(to, [...ids]);
    return [
      `${placeOf(['models', 'aliases', pattern])}: models.aliases.${pattern} refers to ${to}, which is not a model.${match ? ` Did you mean ${match}?` : ''}`,
    ];
  });
}

function checkFallbacks({ catalog, builtin_ids }: Models, placeOf: PlaceOf): string[] {
  const known = builtinModels.filter(({ id }) => builtin_ids || Object.hasOwn(catalog, id));
  const targets = new Map(known.map(({ id, contextFallback }) => [id, contextFallback?.to]));
  for (const [id, { context_fallback }] of Object.entries(catalog)) {
    if (context_fallback !== undefined) targets.set(id, context_fallback?.to);
    else if (!targets.has(id)) targets.set(id, undefined);
  }
  return Object.entries(catalog).flatMap(([id, { context_fallback }]) => {
    if (context_fallback == null) return [];
    const { to } = context_fallback;
    const name = `models.catalog.${id}.context_fallback`;
    const place = placeOf(['models', 'catalog', id, 'context_fallback']);
    if (!targets.has(to)) {
      const match = nearest(to, [...targets.keys()]);
      return [
        `${place}: ${name} refers to ${to}, which is not a model.${match ? ` Did you mean ${match}?` : ''}`,
      ];
    }
    return isInCycle(id, targets)
      ? [`${place}: ${name} leads back to ${id}. Fallbacks must not form a cycle.`]
      : [];
  });
}

function isInCycle(id: string, targets: ReadonlyMap<string, string | undefined>): boolean {
  let next = targets.get(id);
  for (let steps = 0; next !== undefined && steps < targets.size; steps++) {
    if (next === id) return true;
    next = targets.get(next);
  }
  return false;
}

function checkBackends({ catalog }: Models, placeOf: PlaceOf): string[] {
  const seen = new Set<string>();
  return everyBackend(catalog).flatMap(({ id, backend, path, name }) => {
    const problems: string[] = [];
    const key = `${id}/${backend.name}`;
    const place = placeOf([...path, 'name']);
    if (seen.has(key))
      problems.push(
        `${place}: another backend of ${id} is called ${backend.name}. Names must be unique.`,
      );
    seen.add(key);
    if (standInNames.includes(backend.name)) {
      problems.push(
        `${place}: ${name}.name must not be ${backend.name}, which is reserved for the stand-in.`,
      );
    }
    if (!URL.canParse(backend.url)) {
      problems.push(
        `${placeOf([...path, 'url'])}: ${name}.url must be a URL such as http://10.0.0.5:8000/v1.`,
      );
    }
    return problems;
  });
}

function checkEjection({ health }: Models, placeOf: PlaceOf): string[] {
  if (health.eject_seconds <= health.max_eject_seconds) return [];
  const place = placeOf(['models', 'health', 'eject_seconds']);
  return [`${place}: models.health.eject_seconds must not be more than max_eject_seconds.`];
}

function everyBackend(catalog: Models['catalog']) {
  return Object.entries(catalog).flatMap(([id, { backends = [] }]) =>
    backends.map((backend, index) => ({
      id,
      backend,
      path: ['models', 'catalog', id, 'backends', index],
      name: `models.catalog.${id}.backends[${index}]`,
    })),
  );
}
