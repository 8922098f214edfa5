// Routes of instances and instance types.

import type {} from '@fastify/swagger';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { principalOf } from '#accounts/authenticate.ts';
import type { Instances } from '#cloud/instances/instances.ts';
import type { LaunchInstance } from '#cloud/instances/launch.ts';
import type { Capacity } from '#cloud/placement/capacity.ts';
import type { Offers } from '#cloud/placement/instance-types.ts';
import {
  IdParams,
  Instance,
  InstanceChange,
  InstanceIds,
  InstanceTypes,
  Launch,
  LaunchedIds,
} from '#cloud/schema.ts';
import { toId } from '#cloud/wire.ts';
import { Type } from '#lib/schema/schema-builder.ts';
import { operationsOf } from './operation.ts';

export interface InstanceRouteParts {
  offers(): Offers;
  capacity: Pick<Capacity, 'available'>;
  instances: Instances;
  launch: LaunchInstance;
}

const operation = operationsOf('Instances');

export function instanceRoutes(scope: FastifyInstance, parts: InstanceRouteParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const { instances, launch } = parts;

  app.get(
    '/instance-types',
    operation('List instance types and where they have capacity', InstanceTypes),
    async () => ({ data: await listTypes(parts) }),
  );
  app.get(
    '/instances',
    operation('List running instances', Type.Array(Instance)),
    async (request) => ({ data: await instances.list(principalOf(request).accountId) }),
  );
  app.get(
    '/instances/:id',
    operation('Get one instance', Instance, { params: IdParams }),
    async (request) => ({
      data: await instances.get(principalOf(request).accountId, toId(request.params.id)),
    }),
  );
  app.post(
    '/instances/:id',
    operation('Change the name and the tags of an instance', Instance, {
      params: IdParams,
      body: InstanceChange,
    }),
    async (request) => ({
      data: await instances.change(principalOf(request), toId(request.params.id), request.body),
    }),
  );
  app.post(
    '/instance-operations/launch',
    operation('Launch an instance', LaunchedIds, { body: Launch }),
    async (request) => ({
      data: { instance_ids: [await launch(principalOf(request), request.body)] },
    }),
  );
  operationRoutes(scope, instances);
}

function operationRoutes(scope: FastifyInstance, instances: Instances): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const listed = Type.Array(Instance);

  app.post(
    '/instance-operations/restart',
    operation(
      'Restart instances; they keep their disks and addresses',
      Type.Object({ restarted_instances: listed }),
      { body: InstanceIds },
    ),
    async (request) => {
      const ids = request.body.instance_ids.map(toId);
      const restarted = await instances.restart(principalOf(request), ids, 'restart');
      return { data: { restarted_instances: restarted } };
    },
  );
  app.post(
    '/instance-operations/power-cycle',
    operation('Turn instances off and on again', Type.Object({ power_cycled_instances: listed }), {
      body: InstanceIds,
    }),
    async (request) => {
      const ids = request.body.instance_ids.map(toId);
      const cycled = await instances.restart(principalOf(request), ids, 'power-cycle');
      return { data: { power_cycled_instances: cycled } };
    },
  );
  app.post(
    '/instance-operations/terminate',
    operation(
      'Terminate instances; their disks are deleted, their filesystems are kept',
      Type.Object({ terminated_instances: listed }),
      { body: InstanceIds },
    ),
    async (request) => {
      const ids = request.body.instance_ids.map(toId);
      const terminated = await instances.terminate(principalOf(request), ids);
      return { data: { terminated_instances: terminated } };
    },
  );
}

async function listTypes({ offers, capacity }: InstanceRouteParts): Promise<InstanceTypes> {
  const regionsOf = await capacity.available();
  return Object.fromEntries(
    offers().all.map((offer) => [
      offer.type.name,
      {
        instance_type: offer.type,
        regions_with_capacity_available: regionsOf(offer),
      },
    ]),
  );
}
