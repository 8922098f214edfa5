// The endpoints of deployments, our extension of the cloud API. Everyone who may use the cloud may see them. Only an owner
// may change them, because engines run as processes of the server, and see what may hold secrets.

import type {} from '@fastify/swagger';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Authenticator, principalOf, requireRole } from '#accounts/authenticate.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import { cloudErrorFormat } from '#cloud/errors.ts';
import { ok } from '#cloud/schema.ts';
import type { Fits } from '#deployments/fits/fits.ts';
import { fitsRoutes } from '#deployments/fits/fits-routes.ts';
import { notForKeys } from '#deployments/ground/errors.ts';
import {
  CostView,
  DeploymentChange,
  DeploymentLog,
  DeploymentParams,
  DeploymentView,
  NewDeployment,
} from '#deployments/ground/schema.ts';
import { ReplicaStats } from '#deployments/stats/schema.ts';
import { applyErrorFormat } from '#http/error-format.ts';
import { Type } from '#lib/schema/schema-builder.ts';
import type { Deployments } from './deployments.ts';

export interface DeploymentRouteParts {
  authenticator: Authenticator;
  deployments: Deployments;
  fits: Fits;
}

const tags = ['Deployments'];

export function deploymentRoutes(scope: FastifyInstance, parts: DeploymentRouteParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const { deployments } = parts;
  applyErrorFormat(scope, cloudErrorFormat, { maxBytes: 1_048_576, anyContentType: true });
  parts.authenticator.requireScope(scope, 'cloud');
  const params = DeploymentParams;

  app.get(
    '/',
    { schema: { tags, summary: 'List deployments', response: ok(Type.Array(DeploymentView)) } },
    async (request) => {
      const all = await deployments.list(principalOf(request).accountId);
      return { data: all.map((one) => hideSecrets(request, one)) };
    },
  );
  app.get(
    '/:name',
    { schema: { tags, summary: 'Get one deployment', params, response: ok(DeploymentView) } },
    (request) => view(deployments, request, request.params.name),
  );
  app.get(
    '/:name/log',
    {
      schema: {
        tags,
        summary: 'Read the last lines that the engine printed',
        params,
        response: ok(DeploymentLog),
      },
    },
    async (request) => {
      const { accountId } = requireOwner(request);
      return { data: { lines: [...(await deployments.log(accountId, request.params.name))] } };
    },
  );
  app.get(
    '/:name/cost',
    {
      schema: {
        tags,
        summary: 'Get what a deployment served and cost',
        params,
        response: ok(CostView),
      },
    },
    async (request) => ({
      data: await deployments.cost(principalOf(request).accountId, request.params.name),
    }),
  );
  app.get(
    '/:name/stats',
    {
      schema: {
        tags,
        summary: 'Measure what the replicas use',
        params,
        response: ok(Type.Array(ReplicaStats)),
      },
    },
    async (request) => ({
      data: await deployments.stats(principalOf(request).accountId, request.params.name),
    }),
  );
  fitsRoutes(scope, parts.fits, requireOwner);
  changeRoutes(scope, deployments);
  actionRoutes(scope, deployments);
}

function changeRoutes(scope: FastifyInstance, deployments: Deployments): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const params = DeploymentParams;
  const response = ok(DeploymentView);
  app.post(
    '/',
    { schema: { tags, summary: 'Deploy a model', body: NewDeployment, response } },
    async (request) => {
      await deployments.create(requireOwner(request), request.body);
      return view(deployments, request, request.body.name);
    },
  );
  app.post(
    '/:name',
    {
      schema: {
        tags,
        summary: 'Change a deployment',
        params,
        body: DeploymentChange,
        response,
      },
    },
    async (request) => {
      await deployments.update(requireOwner(request), request.params.name, request.body);
      return view(deployments, request, request.params.name);
    },
  );
  app.delete(
    '/:name',
    {
      schema: {
        tags,
        summary: 'Remove a deployment; running requests finish',
        params,
        response: ok(Type.Object({})),
      },
    },
    async (request) => {
      await deployments.remove(requireOwner(request), request.params.name);
      return { data: {} };
    },
  );
}

/** Changes without a body. */
function actionRoutes(scope: FastifyInstance, deployments: Deployments): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  type Act = (session: SessionPrincipal, name: string) => Promise<void>;
  const actions: [name: string, summary: string, act: Act][] = [
    [
      'rollback',
      'Return to the settings before the last change',
      (by, name) => deployments.rollBack(by, name),
    ],
    [
      'stop',
      'Stop all replicas; running requests finish',
      (by, name) => deployments.setStopped(by, name, true),
    ],
    [
      'start',
      'Start a stopped deployment again',
      (by, name) => deployments.setStopped(by, name, false),
    ],
  ];
  for (const [action, summary, act] of actions) {
    app.post(
      `/:name/${action}`,
      { schema: { tags, summary, params: DeploymentParams, response: ok(DeploymentView) } },
      async (request) => {
        const { name } = request.params;
        await act(requireOwner(request), name);
        return view(deployments, request, name);
      },
    );
  }
}

async function view(deployments: Deployments, request: FastifyRequest, name: string) {
  const { accountId } = principalOf(request);
  return { data: hideSecrets(request, await deployments.get(accountId, name)) };
}

/** Arguments and set-up scripts may hold secrets, so only owners see them. */
function hideSecrets(request: FastifyRequest, one: DeploymentView): DeploymentView {
  const principal = principalOf(request);
  const isOwner = principal.kind === 'session' && principal.role === 'owner';
  return isOwner ? one : { ...one, args: null, setup: null };
}

function requireOwner(request: FastifyRequest): SessionPrincipal {
  if (principalOf(request).kind === 'key') throw notForKeys();
  return requireRole(request, 'owner');
}
