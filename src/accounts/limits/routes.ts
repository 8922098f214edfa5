// The endpoints of an account's own limits. Those of keys are changed with the key.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { requireRole, sessionOf } from '#accounts/authenticate.ts';
import { Limits } from '#accounts/schema.ts';
import { toWireLimits } from './limit-set.ts';
import type { LimitSettings } from './settings.ts';
import type { SpendReport } from './spend-report.ts';

export interface LimitParts {
  readonly limitSettings: LimitSettings;
  readonly spendReport: SpendReport;
}

export function limitRoutes(scope: FastifyInstance, parts: LimitParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const { limitSettings, spendReport } = parts;

  app.get('/limits', async (request) => {
    const { accountId } = sessionOf(request);
    const row = await limitSettings.getAccount(accountId);
    return { limits: toWireLimits(row), spend: await spendReport.ofAccount(accountId) };
  });
  app.put('/limits', { schema: { body: Limits } }, async (request) => {
    const session = requireRole(request, 'owner');
    const row = await limitSettings.changeAccount(session, request.body);
    return { limits: toWireLimits(row), spend: await spendReport.ofAccount(session.accountId) };
  });
}
