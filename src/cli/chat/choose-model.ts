// Chooses the model of `run` and `chat` if none is named: the first with a healthy backend of its own, or the one that
// the playground selects.

import { readBackends } from '#cli/backends/find.ts';
import { type Client, RefusedError } from '#cli/client.ts';
import { loadCredentials } from '#cli/credentials.ts';
import { CliError } from '#cli/output.ts';
import type { Model } from '#inference/schema.ts';
import { nearest } from '#lib/text/nearest.ts';

/** The default of the playground. */
const preferred = 'llama3.1-8b-instruct';
/** Models that are tried before the search is given up. */
const maxTried = 50;
/** Ids that an error names. */
const maxNamed = 10;

/** Only a session can see backends. With an API key it is the first model that chats. */
export async function chooseModel(client: Client, wanted: string | undefined): Promise<string> {
  if (wanted !== undefined) return wanted;
  const { session } = loadCredentials();
  const backends = session === null ? [] : await readBackends().catch(ignoreRefusal);
  const real = backends.filter(({ kind, health }) => kind !== 'stand-in' && health === 'healthy');
  const { data } = await client.get<{ data: Model[] }>('/v1/models');
  const ids = new Set([
    ...real.map(({ model }) => model),
    ...byPreference(data.map(({ id }) => id)),
  ]);
  for (const id of [...ids].slice(0, maxTried)) if (await canChat(client, id)) return id;
  throw new CliError('The server offers no model that chats. See docs/models.md.');
}

const byPreference = (ids: readonly string[]) =>
  ids.includes(preferred) ? [preferred, ...ids] : ids;

/** Throws a CliError if the server does not know the model, or if it does not chat. */
export async function requireModel(client: Client, id: string): Promise<void> {
  await client
    .get<Model>(`/v1/models/${encodeURIComponent(id)}`)
    .catch((error) => throwUnknown(client, id, error));
  if (await canChat(client, id)) return;
  throw new CliError(
    `${id} does not chat: it computes embeddings or ranks documents. See docs/embeddings.md.`,
  );
}

/** False for a text that can't be a model's id, without a request. */
export async function isModel(client: Client, text: string): Promise<boolean> {
  if (!/^[\w.:/@-]{1,256}$/.test(text)) return false;
  return client.get<Model>(`/v1/models/${encodeURIComponent(text)}`).then(
    () => true,
    (error) => {
      if (isNotFound(error)) return false;
      throw error;
    },
  );
}

/** Says which models there are if the error means that this one does not exist. */
export async function throwUnknown(client: Client, wanted: string, error: unknown): Promise<never> {
  if (!isNotFound(error)) throw error;
  const { data } = await client.get<{ data: Model[] }>('/v1/models');
  const ids = data.map(({ id }) => id);
  const match = nearest(wanted, ids);
  const more = ids.length > maxNamed ? ', and others: see `millrace models list`' : '';
  const hint = match
    ? `Did you mean ${match}?`
    : `There are: ${ids.slice(0, maxNamed).join(', ')}${more}.`;
  throw new CliError(`There is no model ${wanted}. ${hint}`);
}

const isNotFound = (error: unknown) => error instanceof RefusedError && error.status === 404;

/** Ollama's API says what a model can do. */
async function canChat(client: Client, model: string): Promise<boolean> {
  const shown = await client.post<{ capabilities: string[] }>('/api/show', { model });
  return shown.capabilities.includes('completion');
}

/** An expired session must not hide what the API key can use. */
function ignoreRefusal(error: unknown): [] {
  if (error instanceof CliError) return [];
  throw error;
}
