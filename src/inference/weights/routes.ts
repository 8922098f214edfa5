// The dashboard's and the CLI's endpoints for weights: list what is on disk and what it serves, pull, remove.

import { setTimeout as sleep } from 'node:timers/promises';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { type Authenticator, requireRole, sessionOf } from '#accounts/authenticate.ts';
import { createPersonStreams, type PersonStream } from '#accounts/people/person-streams.ts';
import { IdParams } from '#accounts/schema.ts';
import { applyErrorFormat } from '#http/error-format.ts';
import type { Catalog, CatalogEntry } from '#inference/models/catalog.ts';
import { type Bindings, kindOf } from './bindings.ts';
import { type ChosenFile, quantOf } from './choose.ts';
import { weightsErrorFormat } from './errors.ts';
import { isLive, type PullState, type PullWithFiles } from './pull-rows.ts';
import type { Pulls, WeightsUser } from './pulls.ts';
import {
  CancelQuery,
  type ModelWeights,
  NewPull,
  type Pull,
  type StoredWeights,
} from './schema.ts';
import type { Store, Weights } from './store.ts';

export interface WeightsParts {
  authenticator: Authenticator;
  catalog: Catalog;
  store: Store;
  bindings: Bindings;
  pulls: Pulls;
  isStopping(): boolean;
}

const watchEveryMs = 300;
const maxWatchedPerPerson = 16;

export function weightsRoutes(scope: FastifyInstance, parts: WeightsParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const { catalog, store, bindings, pulls } = parts;
  applyErrorFormat(scope, weightsErrorFormat, { maxBytes: 65_536, anyContentType: false });
  parts.authenticator.requireSession(scope);
  const openStream = createPersonStreams(scope, parts.authenticator, maxWatchedPerPerson);

  app.get('/', async (request) => {
    const [weights, rows] = await Promise.all([
      store.list(),
      pulls.list(sessionOf(request).accountId),
    ]);
    const users = await pulls.usersOf(weights.filter(({ isWhole }) => isWhole));
    return {
      data: weights.map((one) => toStoredWeights(one, bindings, users.get(one.name) ?? [])),
      models: catalog.all().map((entry) => toModelWeights(catalog, entry, bindings)),
      pulls: rows.map(toPull),
    };
  });
  app.get('/pulls/:id', { schema: { params: IdParams } }, async (request) =>
    toPull(await pulls.get(sessionOf(request).accountId, request.params.id)),
  );
  const events = { schema: { params: IdParams }, exposeHeadRoute: false };
  app.get('/pulls/:id/events', events, async (request, reply) => {
    const first = await pulls.get(sessionOf(request).accountId, request.params.id);
    const stream = openStream(request, reply);
    await watch(parts, first, stream).catch((err: unknown) =>
      request.log.error({ err, request_id: request.id }, 'cannot watch a pull'),
    );
    stream.end();
  });

  app.post('/pulls', { schema: { body: NewPull } }, async (request, reply) => {
    const session = requireRole(request, 'owner', 'member');
    reply.code(202);
    return toPull(await pulls.create(session, request.body));
  });
  app.delete(
    '/pulls/:id',
    { schema: { params: IdParams, querystring: CancelQuery } },
    async (request) => {
      const session = requireRole(request, 'owner', 'member');
      await pulls.cancel(session, request.params.id, request.query.keep === 'true');
      return { ok: true };
    },
  );
  // A wildcard, because names contain a slash.
  app.delete('/*', async (request) => {
    const session = requireRole(request, 'owner', 'member');
    await pulls.removeWeights(session, (request.params as { '*': string })['*']);
    return { ok: true };
  });
}

/** Sends the pull after each change, until it has ended. */
async function watch(
  { pulls, isStopping }: WeightsParts,
  first: PullWithFiles,
  stream: PersonStream,
): Promise<void> {
  let sent = '';
  for (let row = first; stream.isOpen(); row = await pulls.refresh(row)) {
    const text = `${row.state} ${row.bytes_done}`;
    if (text !== sent) await stream.send(JSON.stringify(toPull(row)));
    sent = text;
    if (!isLive(row) || isStopping()) return;
    await sleep(watchEveryMs);
  }
}

function toPull(row: PullWithFiles): Pull {
  return {
    id: row.id,
    state: row.state as PullState,
    model: row.model_id,
    name: row.name,
    repo: row.repo,
    files: (JSON.parse(row.files) as ChosenFile[]).map(({ path }) => path),
    bytes_total: row.bytes_total,
    bytes_done: row.bytes_done,
    error: row.error,
    created_at: new Date(row.created_at).toISOString(),
    updated_at: new Date(row.updated_at).toISOString(),
  };
}

function toStoredWeights(
  weights: Weights,
  bindings: Bindings,
  deployments: readonly WeightsUser[],
): StoredWeights {
  return {
    name: weights.name,
    repo: weights.repo,
    quant: quantOf(weights.name),
    files: weights.files.map(({ path }) => path),
    bytes: weights.bytes,
    bytes_on_disk: weights.bytesOnDisk,
    state: weights.isWhole ? 'whole' : 'partial',
    models: bindings.modelsOf(weights.name),
    deployments: deployments.map(({ name }) => name),
  };
}

function toModelWeights(catalog: Catalog, entry: CatalogEntry, bindings: Bindings): ModelWeights {
  const { input, output } = entry.price;
  return {
    id: entry.id,
    aliases: catalog.aliasesOf(entry.id),
    owned_by: entry.ownedBy,
    listed: entry.listed,
    context_window: entry.contextWindow,
    price: { input, output },
    input: [...entry.input],
    kind: kindOf(entry, bindings),
    gguf_repo: entry.weights.gguf,
    safetensors_repo: entry.weights.safetensors,
    weights: bindings.find(entry.id)?.name ?? null,
  };
}
