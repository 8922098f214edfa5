// The routes of the cloud API, except those of instances and firewalls, which have their own files.

import type {} from '@fastify/swagger';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { type Authenticator, principalOf } from '#accounts/authenticate.ts';
import { idOf } from '#accounts/principal.ts';
import { cloudErrorFormat } from '#cloud/errors.ts';
import type { Images } from '#cloud/placement/images.ts';
import { regions } from '#cloud/regions.ts';
import type { Filesystems } from '#cloud/resources/filesystems.ts';
import type { SshKeys } from '#cloud/resources/ssh-keys.ts';
import {
  AuditEvent,
  AuditEventQuery,
  Filesystem,
  IdParams,
  Image,
  NewFilesystem,
  NewSshKey,
  Region,
  SshKey,
  SshKeyRemoval,
} from '#cloud/schema.ts';
import { toId } from '#cloud/wire.ts';
import type { LargeBodies } from '#http/body/bodies.ts';
import type { BodyRoom } from '#http/body/room.ts';
import { applyErrorFormat } from '#http/error-format.ts';
import type { RateLimiter } from '#lib/limits/rate-limit.ts';
import { Type } from '#lib/schema/schema-builder.ts';
import type { AuditEvents } from './audit-events.ts';
import { type FirewallRouteParts, firewallRoutes } from './firewall-routes.ts';
import { type InstanceRouteParts, instanceRoutes } from './instance-routes.ts';
import { type CloudLimits, limitRequests } from './limits.ts';
import { operationsOf } from './operation.ts';
import { supportRoutes } from './support-routes.ts';

export interface CloudRouteParts {
  authenticator: Authenticator;
  limiter: RateLimiter;
  limits: CloudLimits;
  bodyRoom: BodyRoom;
  cloud: InstanceRouteParts & FirewallRouteParts & ResourceRouteParts;
}

interface ResourceRouteParts {
  sshKeys: SshKeys;
  filesystems: Filesystems;
  images: Images;
  auditEvents: AuditEvents;
}

/** 1 MB of user_data with every byte escaped to six (as in `\u0001`), and the rest of a launch. */
const maxBodyBytes = 6_553_600;

export function cloudRoutes(scope: FastifyInstance, parts: CloudRouteParts): void {
  const { cloud } = parts;
  const large: LargeBodies = {
    admit: (request, bytes, signal) =>
      parts.bodyRoom.enter(idOf(principalOf(request)), bytes, signal),
  };
  applyErrorFormat(scope, cloudErrorFormat, {
    maxBytes: maxBodyBytes,
    anyContentType: true,
    large,
  });
  parts.authenticator.requireScope(scope, 'cloud');
  limitRequests(scope, parts.limiter, parts.limits);
  instanceRoutes(scope, cloud);
  sshKeyRoutes(scope, cloud.sshKeys);
  filesystemRoutes(scope, cloud.filesystems);
  firewallRoutes(scope, cloud);
  supportRoutes(scope);
  catalogRoutes(scope, cloud.images, cloud.auditEvents);
}

function sshKeyRoutes(scope: FastifyInstance, sshKeys: SshKeys): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const operation = operationsOf('SSH keys');
  app.get('/ssh-keys', operation('List SSH keys', Type.Array(SshKey)), async (request) => ({
    data: await sshKeys.list(principalOf(request).accountId),
  }));
  app.post(
    '/ssh-keys',
    operation('Add an SSH key, or generate one', SshKey, { body: NewSshKey }),
    async (request) => ({ data: await sshKeys.add(principalOf(request), request.body) }),
  );
  app.delete(
    '/ssh-keys/:id',
    operation('Delete an SSH key', Type.Object({}), {
      params: IdParams,
      querystring: SshKeyRemoval,
    }),
    async (request) => {
      const { machines } = request.query;
      await sshKeys.remove(principalOf(request), toId(request.params.id), machines);
      return { data: {} };
    },
  );
}

/** The contract has two spellings: lists have a hyphen, changes don't. */
function filesystemRoutes(scope: FastifyInstance, filesystems: Filesystems): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const operation = operationsOf('Filesystems');
  app.get(
    '/file-systems',
    operation('List filesystems', Type.Array(Filesystem)),
    async (request) => ({ data: await filesystems.list(principalOf(request).accountId) }),
  );
  app.post(
    '/filesystems',
    operation('Create a filesystem', Filesystem, { body: NewFilesystem }),
    async (request) => ({ data: await filesystems.create(principalOf(request), request.body) }),
  );
  app.delete(
    '/filesystems/:id',
    operation(
      'Delete a filesystem and its contents',
      Type.Object({ deleted_ids: Type.Array(Type.String()) }),
      { params: IdParams },
    ),
    async (request) => {
      const id = toId(request.params.id);
      await filesystems.remove(principalOf(request), id);
      return { data: { deleted_ids: [id] } };
    },
  );
}

function catalogRoutes(scope: FastifyInstance, images: Images, auditEvents: AuditEvents): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const operation = operationsOf('Catalog');
  app.get('/images', operation('List images', Type.Array(Image)), async () => ({
    data: images.list(),
  }));
  app.get('/regions', operation('List regions', Type.Array(Region)), async () => ({
    data: [...regions],
  }));
  app.get(
    '/audit-events',
    {
      schema: {
        tags: ['Catalog'],
        summary: 'List audit events, newest first',
        querystring: AuditEventQuery,
        response: {
          200: Type.Object({
            data: Type.Array(AuditEvent),
            page_token: Type.Union([Type.String(), Type.Null()]),
          }),
        },
      },
    },
    async (request) => auditEvents.page(principalOf(request).accountId, request.query),
  );
}
