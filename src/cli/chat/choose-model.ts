// Chooses the model of `run` and `chat` if none is named: the first with a healthy backend of its own.

import { readBackends } from '#cli/backends/list.ts';
import type { Client } from '#cli/client.ts';
import { loadCredentials } from '#cli/credentials.ts';
import { CliError } from '#cli/output.ts';
import type { Model } from '#inference/schema.ts';

/** Only a session can see backends. With an API key it is the first model that is offered. */
export async function chooseModel(client: Client, wanted: string | undefined): Promise<string> {
  if (wanted !== undefined) return wanted;
  const { session } = loadCredentials();
  const backends = session === null ? [] : await readBackends().catch(ignoreRefusal);
  const real = backends.find(({ kind, health }) => kind !== 'stand-in' && health === 'healthy');
  if (real !== undefined) return real.model;
  const { data } = await client.get<{ data: Model[] }>('/v1/models');
  const [first] = data;
  if (first === undefined) throw new CliError('The server offers no model. See docs/models.md.');
  return first.id;
}

/** Throws a CliError if the server does not know the model. */
export const requireModel = (client: Client, id: string) =>
  client.get<Model>(`/v1/models/${encodeURIComponent(id)}`);

/** An expired session must not hide what the API key can use. */
function ignoreRefusal(error: unknown): [] {
  if (error instanceof CliError) return [];
  throw error;
}
