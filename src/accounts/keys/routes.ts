// The endpoints of API keys.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { requireRole, sessionOf } from '#accounts/authenticate.ts';
import { toWireLimits } from '#accounts/limits/limit-set.ts';
import type { SpendReport } from '#accounts/limits/spend-report.ts';
import { toPageOptions } from '#accounts/paging.ts';
import { scopes } from '#accounts/principal.ts';
import {
  type ApiKey,
  ApiKeyChange,
  ApiKeysQuery,
  IdParams,
  KeyRevocation,
  NewApiKey,
  type Spend,
} from '#accounts/schema.ts';
import { toTime } from '#accounts/wire-time.ts';
import { toReadable } from '#lib/text/email.ts';
import type { ListedApiKey } from './api-key-list.ts';
import type { ApiKeys } from './api-keys.ts';

export interface KeyParts {
  readonly apiKeys: ApiKeys;
  readonly spendReport: SpendReport;
}

export function keyRoutes(scope: FastifyInstance, parts: KeyParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const { apiKeys, spendReport } = parts;

  app.get('/api-keys', { schema: { querystring: ApiKeysQuery } }, async (request) => {
    const { accountId } = sessionOf(request);
    const { search } = request.query;
    const options = { search, ...toPageOptions(request.query) };
    const { data, next } = await apiKeys.list(accountId, options);
    const ids = data.map(({ id }) => id);
    const spend = await spendReport.ofKeys(accountId, ids);
    return { data: data.map((row) => toApiKey(row, spend(row.id))), next };
  });
  app.post('/api-keys', { schema: { body: NewApiKey } }, async (request) => {
    const session = requireRole(request, 'owner', 'member');
    const { label, scopes: wanted, expires_at, limits } = request.body;
    const input = {
      label,
      scopes: wanted ?? scopes,
      expiresAt: expires_at == null ? null : Date.parse(expires_at),
      limits: limits ?? {},
    };
    const { row, key } = await apiKeys.create(session.accountId, input, session);
    const made = { ...row, creator_email: session.email };
    return { ...toApiKey(made, spendReport.nothing()), key };
  });
  app.get('/api-keys/:id', { schema: { params: IdParams } }, async (request) => {
    const { accountId } = sessionOf(request);
    const row = await apiKeys.get(accountId, request.params.id);
    const spend = await spendReport.ofKeys(accountId, [row.id]);
    return toApiKey(row, spend(row.id));
  });
  app.patch(
    '/api-keys/:id',
    { schema: { params: IdParams, body: ApiKeyChange } },
    async (request) => {
      const session = requireRole(request, 'owner', 'member');
      const { label, limits } = request.body;
      const row = await apiKeys.update(session, request.params.id, {
        ...(label == null ? {} : { label }),
        ...(limits == null ? {} : { limits }),
      });
      const spend = await spendReport.ofKeys(session.accountId, [row.id]);
      return toApiKey(row, spend(row.id));
    },
  );
  app.delete(
    '/api-keys/:id',
    { schema: { params: IdParams, querystring: KeyRevocation } },
    async (request) => {
      const session = requireRole(request, 'owner', 'member');
      const letsFinish = request.query.running === 'finish';
      await apiKeys.revoke(session, request.params.id, { letsFinish });
      return { ok: true };
    },
  );
}

const toMaybeTime = (ms: number | null) => (ms === null ? null : toTime(ms));

function toApiKey(row: ListedApiKey, spend: Spend): ApiKey {
  return {
    id: row.id,
    label: row.label,
    hint: row.hint,
    scopes: JSON.parse(row.scopes),
    created_at: toTime(row.created_at),
    created_by:
      row.created_by === null ? null : { id: row.created_by, email: toReadable(row.creator_email) },
    expires_at: toMaybeTime(row.expires_at),
    last_used_at: toMaybeTime(row.last_used_at),
    limits: toWireLimits(row),
    spend,
  };
}
