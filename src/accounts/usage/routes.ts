// Usage for the dashboard and the CLI: sums over time, single requests, and both as CSV. Every member may read
// the usage of the account.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { type Authenticator, sessionOf } from '#accounts/authenticate.ts';
import { toPageOptions } from '#accounts/paging.ts';
import { IdParams } from '#accounts/schema.ts';
import { parseOptionalTime, toTime } from '#accounts/wire-time.ts';
import type { Clock } from '#lib/clock.ts';
import { invalidBody, notFound } from '#lib/errors.ts';
import { toCsv } from './csv.ts';
import { hourMs } from './periods.ts';
import type { UsageRequests } from './requests.ts';
import type { UsageRetention } from './retention.ts';
import { readLatency, readLive } from './samples.ts';
import {
  type UsageBucket,
  UsageExportQuery,
  UsageLatencyQuery,
  UsageQuery,
  type UsageRequest,
  UsageRequestQuery,
  UsageRequestsQuery,
} from './schema.ts';
import type { SummarySpan, UsageSummaries } from './summaries.ts';

export interface UsageParts {
  authenticator: Authenticator;
  clock: Clock;
  summaries: UsageSummaries;
  requests: UsageRequests;
  retention: Pick<UsageRetention, 'storage'>;
}

const dayMs = 24 * hourMs;
const stepMs = { hour: hourMs, day: dayMs };
const maxDays = { hour: 40, day: 400 };

export function usageRoutes(scope: FastifyInstance, parts: UsageParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const { authenticator, clock, summaries, requests, retention } = parts;
  authenticator.requireSession(scope);

  app.get('/usage', { schema: { querystring: UsageQuery } }, async (request) => {
    const span = parseSummary(request.query, clock.now());
    const data = await summaries.list(sessionOf(request).accountId, span);
    return { ...span, from: toTime(span.from), to: toTime(span.to), data };
  });
  app.get('/usage/storage', async () => retention.storage);
  app.get('/usage/requests', { schema: { querystring: UsageRequestsQuery } }, async (request) => {
    const { accountId } = sessionOf(request);
    const from = parseOptionalTime('from', request.query.from);
    return requests.page(accountId, { ...request.query, ...toPageOptions(request.query), from });
  });
  app.get(
    '/usage/requests/:id',
    { schema: { params: IdParams, querystring: UsageRequestQuery } },
    async (request) => {
      const { accountId } = sessionOf(request);
      const at = parseOptionalTime('at', request.query.at);
      const found = await requests.find(accountId, request.params.id, at);
      if (found === undefined) throw notFound('This request');
      return found;
    },
  );
  sampleRoutes(scope, parts);

  // No HEAD route: it would read the whole export and discard it.
  const csv = { exposeHeadRoute: false };
  app.get('/usage.csv', { ...csv, schema: { querystring: UsageQuery } }, (request, reply) => {
    const span = parseSummary(request.query, clock.now());
    const days = summaries.days(sessionOf(request).accountId, span);
    attach(reply, 'usage', span).send(toCsv(bucketColumns, days));
  });
  app.get(
    '/usage/requests.csv',
    { ...csv, schema: { querystring: UsageExportQuery } },
    (request, reply) => {
      const { from, to, ...filter } = request.query;
      const span = parseSpan({ from, to }, clock.now(), maxDays.day);
      const pages = requests.between(sessionOf(request).accountId, { ...span, ...filter });
      attach(reply, 'requests', span).send(toCsv(requestColumns, pages));
    },
  );
}

function sampleRoutes(scope: FastifyInstance, { clock, requests }: UsageParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  app.get('/usage/live', (request) =>
    readLive(requests, sessionOf(request).accountId, clock.now()),
  );
  app.get('/usage/latency', { schema: { querystring: UsageLatencyQuery } }, (request) => {
    const { model, key, from } = request.query;
    const filter = { model, key, from: parseOptionalTime('from', from) ?? clock.now() - 7 * dayMs };
    return readLatency(requests, sessionOf(request).accountId, filter);
  });
}

/** The span begins at the start of a step, because sums have no finer times. */
function parseSummary(query: UsageQuery, now: number): SummarySpan {
  const { step = 'day', by = 'none', model, key } = query;
  const { from, to } = parseSpan(query, now, maxDays[step]);
  return { from: from - (from % stepMs[step]), to, step, by, model, key };
}

function parseSpan(
  query: { from?: string | undefined; to?: string | undefined },
  now: number,
  days: number,
) {
  const to = query.to === undefined ? now : Date.parse(query.to);
  const from = query.from === undefined ? to - 7 * dayMs : Date.parse(query.from);
  // Not `from >= to`: the schema accepts a leap second, which Date.parse turns into NaN.
  if (!(from < to)) throw invalidBody('from must be before to.', 'from');
  if (to - from > days * dayMs) {
    throw invalidBody(`from and to must be at most ${days} days apart.`, 'from');
  }
  return { from, to };
}

function attach(reply: FastifyReply, name: string, { from, to }: { from: number; to: number }) {
  const file = `${name}-${toTime(from).slice(0, 10)}-${toTime(to).slice(0, 10)}.csv`;
  return reply
    .type('text/csv; charset=utf-8')
    .header('content-disposition', `attachment; filename="${file}"`);
}

const bucketColumns: readonly (keyof UsageBucket)[] = [
  'start',
  'group',
  'label',
  'requests',
  'errors',
  'aborted',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'cost',
  'first_token_ms',
  'refused',
];

const requestColumns: readonly (keyof UsageRequest)[] = [
  'id',
  'at',
  'operation',
  'model',
  'served_model',
  'backend',
  'key_id',
  'key_label',
  'user_email',
  'status',
  'code',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'first_token_ms',
  'duration_ms',
  'cost',
  'reserved',
];
