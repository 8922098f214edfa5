// The routes of /v1/batches.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { principalOf } from '#accounts/authenticate.ts';
import type { BatchRow } from '#db/tables/batch-rows.ts';
import { toListBody } from '#inference/apis/files/list-page.ts';
import { inJson } from '#inference/apis/response-schemas.ts';
import { toCaller } from '#inference/request.ts';
import type { Batches } from './batches.ts';
import { liveStates } from './rows.ts';
import { BatchesQuery, BatchList, BatchObject, BatchParams, NewBatch } from './schema.ts';

const tags = ['Inference'];
const defaultLimit = 20;

export function batchRoutes(scope: FastifyInstance, batches: Batches): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const one = { tags, params: BatchParams, response: inJson(BatchObject) };
  app.post(
    '/batches',
    { schema: { tags, summary: 'Create a batch', body: NewBatch, response: inJson(BatchObject) } },
    async (request) =>
      toBatchObject(await batches.create(toCaller(principalOf(request)), request.body)),
  );
  app.get(
    '/batches',
    {
      schema: {
        tags,
        summary: 'List batches',
        querystring: BatchesQuery,
        response: inJson(BatchList),
      },
    },
    async (request) => {
      const { limit = defaultLimit, after } = request.query;
      const page = { limit: Number(limit), after };
      return toListBody(await batches.list(principalOf(request).accountId, page), toBatchObject);
    },
  );
  app.get('/batches/:id', { schema: { ...one, summary: 'Get one batch' } }, async (request) =>
    toBatchObject(await batches.get(principalOf(request).accountId, request.params.id)),
  );
  app.post(
    '/batches/:id/cancel',
    { schema: { ...one, summary: 'Cancel a batch' } },
    async (request) =>
      toBatchObject(await batches.cancel(principalOf(request).accountId, request.params.id)),
  );
}

export function toBatchObject(row: BatchRow): BatchObject {
  // The files of the results are visible once they are complete.
  const hasEnded = !liveStates.some((state) => state === row.state);
  return {
    id: row.id,
    object: 'batch',
    endpoint: row.endpoint,
    status: row.state,
    errors: row.errors === null ? null : { object: 'list', data: JSON.parse(row.errors) },
    input_file_id: row.input_file_id,
    completion_window: row.completion_window,
    output_file_id: hasEnded ? row.output_file_id : null,
    error_file_id: hasEnded ? row.error_file_id : null,
    created_at: Math.floor(row.created_at / 1000),
    in_progress_at: toSeconds(row.in_progress_at),
    expires_at: Math.floor(row.expires_at / 1000),
    finalizing_at: toSeconds(row.finalizing_at),
    completed_at: toSeconds(row.completed_at),
    failed_at: toSeconds(row.failed_at),
    expired_at: toSeconds(row.expired_at),
    cancelling_at: toSeconds(row.cancelling_at),
    cancelled_at: toSeconds(row.cancelled_at),
    request_counts: { total: row.total, completed: row.completed, failed: row.failed },
    metadata: row.metadata === null ? null : JSON.parse(row.metadata),
  };
}

const toSeconds = (ms: number | null) => (ms === null ? null : Math.floor(ms / 1000));
