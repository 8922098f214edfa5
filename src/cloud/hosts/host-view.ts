// Hosts as the dashboard and the CLI show them: the size of each node, and what instances use of it.

import type { Database } from '#db/tables/tables.ts';
import type { HostState } from './host.ts';
import type { HostView, NetworkNotice } from './schema.ts';

/** The regions in which machines may have no internet access, with the reason and the remedy. */
export function listNetworkNotices(hosts: readonly HostState[]): NetworkNotice[] {
  const notices = hosts.flatMap(({ row, online, report }) => {
    const message = online ? report?.networkObstacle : undefined;
    return message === undefined ? [] : [{ region: row.region, message }];
  });
  return [...new Map(notices.map((one) => [`${one.region} ${one.message}`, one])).values()];
}

export async function viewHosts(db: Database, hosts: readonly HostState[]): Promise<HostView[]> {
  const sums = await db
    .selectFrom('instances')
    .select((row) => [
      'host_id',
      'node',
      row.fn.countAll<number>().as('instances'),
      row.fn.sum<number>('vcpus').as('vcpus'),
      row.fn.sum<number>('memory_gib').as('memoryGib'),
      row.fn.sum<number>('storage_gib').as('storageGib'),
    ])
    .where('status', '!=', 'terminated')
    .groupBy(['host_id', 'node'])
    .execute();
  const holders = await db.selectFrom('instance_gpus').selectAll().execute();
  const models = await db.selectFrom('model_gpus').selectAll().execute();

  return hosts.map((host) => {
    const { row, report } = host;
    const mine = sums.filter(({ host_id }) => host_id === row.id);
    const gpuHolders = holders.filter(({ host_id }) => host_id === row.id);
    const nodes =
      report === null ? [] : (report.nodes ?? [{ ...report, name: null, online: true }]);
    return {
      id: row.id,
      name: row.name,
      region: row.region,
      driver: row.driver,
      url: row.url,
      target: row.target,
      engine: report?.engine ?? null,
      status: !host.online ? 'offline' : row.draining === 1 ? 'draining' : 'online',
      draining: row.draining === 1,
      reason: host.reason,
      seen_at: host.seenAt === null ? null : new Date(host.seenAt).toISOString(),
      nodes: nodes.map((node) => {
        const used = mine.find((sum) => sum.node === node.name);
        return {
          name: node.name ?? row.name,
          online: host.online && node.online,
          vcpus: node.vcpus,
          vcpus_used: used?.vcpus ?? 0,
          memory_gib: node.memoryGib,
          memory_gib_used: used?.memoryGib ?? 0,
          storage_gib: node.storageGib,
          storage_gib_used: used?.storageGib ?? 0,
          gpus: node.gpus.map(({ address, model, memoryGib }) => ({
            address,
            model,
            memory_gib: memoryGib,
            instance_id:
              gpuHolders.find((one) => one.address === address && one.node === (node.name ?? ''))
                ?.instance_id ?? null,
            used_by_models: models.some((one) => one.host_id === row.id && one.address === address),
          })),
        };
      }),
      instances: mine.reduce((total, { instances }) => total + instances, 0),
      source: row.source,
    };
  });
}
