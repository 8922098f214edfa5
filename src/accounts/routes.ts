// The endpoints that the dashboard and the CLI call: sign-in, keys, members, sessions and the audit log.

import cookie from '@fastify/cookie';
import type {} from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';
import type { AuditLog } from '#accounts/audit/audit-log.ts';
import { auditRoutes } from '#accounts/audit/routes.ts';
import { type KeyParts, keyRoutes } from '#accounts/keys/routes.ts';
import { type LimitParts, limitRoutes } from '#accounts/limits/routes.ts';
import { type MemberParts, memberRoutes } from '#accounts/people/member-routes.ts';
import {
  type SignInParts,
  sessionRoutes,
  signedOutRoutes,
} from '#accounts/people/sign-in-routes.ts';
import { applyErrorFormat } from '#http/error-format.ts';
import type { Authenticator } from './authenticate.ts';
import { accountsErrorFormat } from './errors.ts';

export interface AccountParts extends SignInParts, MemberParts, KeyParts, LimitParts {
  readonly authenticator: Authenticator;
  readonly auditLog: AuditLog;
}

const maxBytes = 65_536;

export function accountRoutes(scope: FastifyInstance, parts: AccountParts): void {
  applyErrorFormat(scope, accountsErrorFormat, { maxBytes, anyContentType: false });
  scope.register(cookie);
  scope.register(async (open) => signedOutRoutes(open, parts));
  scope.register(async (inner) => {
    parts.authenticator.requireSession(inner);
    sessionRoutes(inner, parts);
    keyRoutes(inner, parts);
    auditRoutes(inner, parts.auditLog);
    limitRoutes(inner, parts);
    memberRoutes(inner, parts);
  });
}
