// Converts hosts to places: one for each node, with whether instances may be placed on it now.

import type { NodeReport } from '#cloud/drivers/driver.ts';
import type { Place } from '#cloud/placement/place.ts';
import { type HostReport, type HostState, parseExtras } from './host.ts';

/** Two hosts may have one node in common, such as a cluster and a group of it. Only the older host accepts
 * instances there; the other would hand out the same GPUs again. */
export function toPlaces(hosts: readonly HostState[]): Place[] {
  const known = new Set<string>();
  return hosts.flatMap((host) =>
    placesOf(host).map((single) => {
      if (host.report?.identity === undefined) return single;
      const { identity } = host.report;
      const siblings = hosts.filter(({ report }) => report?.identity === identity);
      const place = { ...single, poolHosts: siblings.map(({ row }) => row.id) };
      const key = toNodeKey(host.report, place.node);
      const isShared = known.has(key);
      known.add(key);
      return isShared ? { ...place, accepting: false } : place;
    }),
  );
}

/** Adds the reason why nothing is placed on nodes that belong to an older host. */
export function explainSharedNodes(hosts: readonly HostState[]): HostState[] {
  const owners = new Map<string, string>();
  return hosts.map((host) => {
    if (host.report?.identity === undefined) return host;
    const shared = placesOf(host).filter(({ node }) => {
      const key = toNodeKey(host.report, node);
      const owner = owners.get(key) ?? host.row.id;
      owners.set(key, owner);
      return owner !== host.row.id;
    });
    if (shared.length === 0 || host.reason !== null) return host;
    const names = shared.map(({ node }) => node ?? 'its computer').join(', ');
    return { ...host, reason: `Nothing is placed on ${names}: another host has it already.` };
  });
}

const toNodeKey = (report: HostReport | null, node: string | null) =>
  `${report?.identity ?? ''}/${node ?? ''}`;

function placesOf({ row, online, report }: HostState): Place[] {
  if (report === null) return [];
  const nodes: (Omit<NodeReport, 'name'> & { name: string | null })[] = report.nodes ?? [
    { ...report, name: null, online: true },
  ];
  return nodes.map((node) => ({
    hostId: row.id,
    hostName: row.name,
    region: row.region,
    node: node.name,
    accepting: online && node.online && row.draining === 0,
    isolated: report.isolated,
    vcpus: node.vcpus,
    memoryGib: node.memoryGib,
    storageGib: node.storageGib,
    gpus: node.gpus,
    addressPool: report.addressPool,
    poolHosts: [row.id],
    images: report.images,
    defaultImage: parseExtras(row).default_image ?? null,
    sharesFilesystems: row.filesystems_path !== null,
  }));
}
