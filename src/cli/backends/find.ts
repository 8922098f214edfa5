// Finds a backend by its id, model/name, by its name alone, or by the first characters of its id. Model ids and
// names of weights may contain slashes, so the server's list decides where the model ends and the name begins.

import { findOnly } from '#cli/find.ts';
import type { BackendView } from '#inference/backends/schema.ts';
import { readBackends } from './list.ts';

export const backendArgument = [
  '<backend>',
  'Id as model/name, its first characters, or the name, from `millrace backends list`',
] as const;

export const getBackend = async (wanted: string): Promise<BackendView> =>
  findOnly(await readBackends(), wanted, {
    noun: 'backend',
    command: 'millrace backends list',
    namesOf: ({ name }) => [name],
  });

export const toBackendPath = ({ model, name }: BackendView) =>
  `/dashboard/api/backends/${encodeURIComponent(model)}/${encodeURIComponent(name)}`;
