// Scopes for tests of the stores: a key and its account, with what limits a test names.

import { randomUUID } from 'node:crypto';
import { type LimitSet, unlimited } from '#accounts/limits/limit-set.ts';
import type { LimitScope } from '#accounts/limits/store.ts';

export const month = '2026-01';

export function newScope(limits: Partial<LimitSet>, more: Partial<LimitScope> = {}): LimitScope {
  const id = randomUUID();
  return {
    kind: 'key',
    id,
    accountId: 'account',
    limits: { ...unlimited, ...limits },
    spentNano: 0,
    otherServersNano: 0,
    ...more,
  };
}
