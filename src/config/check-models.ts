// What a schema can't say about models: fallbacks that lead somewhere and end, names that tell backends
// apart, and keys that are in the environment.

import { builtinModels, standInNames } from '#inference/models/builtin-models.ts';
import { nearest } from '#lib/nearest.ts';
import type { PlaceOf } from './cross-check.ts';
import type { Config } from './schema.ts';

type Models = Config['models'];

export function checkModels(models: Models, placeOf: PlaceOf): string[] {
  return [
    ...checkFallbacks(models, placeOf),
    ...checkBackends(models, placeOf),
    ...checkEjection(models, placeOf),
  ];
}

/** Puts the keys that `api_key_env` names into their places. */
export function resolveKeys(
  { catalog }: Models,
  environment: Record<string, string | undefined>,
  placeOf: PlaceOf,
): string[] {
  return everyBackend(catalog).flatMap(({ backend, path, name }) => {
    if (backend.api_key_env === null) return [];
    const place = placeOf([...path, 'api_key_env']);
    if (backend.api_key !== null)
      return [`${place}: set ${name}.api_key or its api_key_env, not both.`];
    const key = environment[backend.api_key_env];
    if (key === undefined || !/^[!-~]{1,4096}$/.test(key)) {
      return [
        `${place}: ${name}.api_key_env names ${backend.api_key_env}, which is not set to a key in the environment.`,
      ];
    }
    backend.api_key = key;
    return [];
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
        `${place}: ${name} leads to ${to}, which is no model here.${match ? ` Did you mean ${match}?` : ''}`,
      ];
    }
    return leadsBack(id, targets) ? [`${place}: ${name} leads back to ${id}.`] : [];
  });
}

function leadsBack(id: string, targets: ReadonlyMap<string, string | undefined>): boolean {
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
      problems.push(`${place}: another backend of ${id} is called ${backend.name}.`);
    seen.add(key);
    if (standInNames.includes(backend.name)) {
      problems.push(
        `${place}: ${name}.name is ${backend.name}, which means the model that stands in.`,
      );
    }
    if (!URL.canParse(backend.url)) {
      problems.push(`${placeOf([...path, 'url'])}: ${name}.url is not a web address.`);
    }
    return problems;
  });
}

function checkEjection({ health }: Models, placeOf: PlaceOf): string[] {
  if (health.eject_seconds <= health.eject_seconds_most) return [];
  const place = placeOf(['models', 'health', 'eject_seconds']);
  return [`${place}: models.health.eject_seconds is more than eject_seconds_most.`];
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
