// The cloud API, route by route.

import type {} from '@fastify/swagger';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { type Authenticator, principalOf } from '../accounts/authenticate.ts';
import { applyDialect } from '../lib/dialect.ts';
import type { RateLimiter } from '../lib/rate-limit.ts';
import { Type } from '../lib/type.ts';
import { cloudDialect, instanceNotFound } from './errors.ts';
import { type CloudLimits, limitRequests } from './limits.ts';
import { IdParams, NewSshKey, Region, SshKey } from './schema.ts';
import type { SshKeys } from './ssh-keys.ts';

export interface CloudParts {
  authenticator: Authenticator;
  limiter: RateLimiter;
  limits: CloudLimits;
  sshKeys: SshKeys;
}

/** 1 MB of user_data, JSON-escaped at its usual worst, and the rest of a launch. */
const maxBodyBytes = 1_153_434;

const ok = <S extends Parameters<typeof Type.Array>[0]>(data: S) => ({
  200: Type.Object({ data }),
});

export function cloudRoutes(scope: FastifyInstance, parts: CloudParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  applyDialect(scope, cloudDialect, { maxBytes: maxBodyBytes, anyContentType: true });
  parts.authenticator.requireScope(scope, 'cloud');
  limitRequests(scope, parts.limiter, parts.limits);
  const tags = ['Cloud'];

  app.get(
    '/ssh-keys',
    { schema: { tags, summary: 'List SSH keys', response: ok(Type.Array(SshKey)) } },
    async (request) => ({ data: await parts.sshKeys.list(principalOf(request).accountId) }),
  );
  app.post(
    '/ssh-keys',
    {
      bodyLimit: maxBodyBytes,
      schema: {
        tags,
        summary: 'Add an SSH key, or generate one',
        body: NewSshKey,
        response: ok(SshKey),
      },
    },
    async (request) => ({ data: await parts.sshKeys.add(principalOf(request), request.body) }),
  );
  app.delete(
    '/ssh-keys/:id',
    {
      schema: {
        tags,
        summary: 'Delete an SSH key',
        params: IdParams,
        response: ok(Type.Object({})),
      },
    },
    async (request) => {
      await parts.sshKeys.remove(principalOf(request), toId(request.params.id));
      return { data: {} };
    },
  );

  app.get('/instances', { schema: { tags, summary: 'List running instances' } }, async () => ({
    data: [],
  }));
  app.get(
    '/instances/:id',
    { schema: { tags, summary: 'Get one instance', params: IdParams } },
    async () => {
      throw instanceNotFound();
    },
  );
  app.get(
    '/instance-types',
    { schema: { tags, summary: 'List instance types and where they have capacity' } },
    async () => ({ data: {} }),
  );
  app.get('/file-systems', { schema: { tags, summary: 'List filesystems' } }, async () => ({
    data: [],
  }));
  app.get('/images', { schema: { tags, summary: 'List images' } }, async () => ({ data: [] }));
  app.get(
    '/regions',
    { schema: { tags, summary: 'List regions', response: ok(Type.Array(Region)) } },
    async () => ({ data: [] }),
  );
}

/** Ids may be sent with dashes; we keep them without. */
const toId = (id: string) => id.replaceAll('-', '').toLowerCase();
