// What a schema can't express about deployments: settings that contradict each other, models that don't exist, and
// variables that are not set.

import { toSpec } from '#deployments/ground/spec.ts';
import { builtinModels } from '#inference/models/builtin-models.ts';
import { Refusal } from '#lib/errors.ts';
import { nearest } from '#lib/text/nearest.ts';
import type { PlaceOf } from './place.ts';
import type { Config } from './schema.ts';

type Deployments = Config['deployments'];

export function checkDeployments(
  { deployments, models: { catalog, builtin_ids } }: Config,
  placeOf: PlaceOf,
): string[] {
  const builtin = builtin_ids ? builtinModels.map(({ id }) => id) : [];
  const ids = [...builtin, ...Object.keys(catalog)];
  return Object.entries(deployments).flatMap(([name, { env_from: _, ...settings }]) => {
    const place = (member: string) =>
      `${placeOf(['deployments', name, member])}: deployments.${name}`;
    const { model } = settings;
    if (!ids.includes(model)) {
      const match = nearest(model, ids);
      const hint = match ? `Did you mean ${match}?` : 'Add it to models.catalog.';
      return [`${place('model')}.model is ${model}, which is not a model. ${hint}`];
    }
    const kind = catalog[model]?.kind ?? 'chat';
    if (kind !== 'chat')
      return [`${place('model')}.model is for ${kind}. Deployments serve models that chat.`];
    try {
      toSpec({ name, ...settings });
      return [];
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return [`${place(error.param ?? 'engine')}: ${error.message}`];
    }
  });
}

/** Replaces `env_from` by the values of the server's environment. Returns the problems. */
export function resolveEnvironments(
  deployments: Deployments,
  environment: Record<string, string | undefined>,
  placeOf: PlaceOf,
): string[] {
  return Object.entries(deployments).flatMap(([name, settings]) => {
    const { env_from = {} } = settings;
    delete settings.env_from;
    return Object.entries(env_from).flatMap(([variable, from]) => {
      const value = environment[from];
      if (value !== undefined) {
        settings.env = { ...settings.env, [variable]: value };
        return [];
      }
      const place = placeOf(['deployments', name, 'env_from', variable]);
      return [
        `${place}: deployments.${name}.env_from.${variable} refers to ${from}, which the environment does not set.`,
      ];
    });
  });
}
