// The places that hosts are: every node of theirs, and whether something may be placed on it now.

import type { NodeReport } from '#cloud/drivers/driver.ts';
import type { Place } from '#cloud/placement/placement.ts';
import type { HostExtras, HostReport } from './host-drivers.ts';
import type { Host } from './hosts.ts';

/** One node may be in two hosts, such as a cluster and a group of it. Only the older host has it to give
 * away: the other would hand out the same GPUs again. */
export function toPlaces(hosts: readonly Host[]): Place[] {
  const known = new Set<string>();
  return hosts.flatMap((host) =>
    placesOf(host).map((alone) => {
      if (host.report?.identity === undefined) return alone;
      const { identity } = host.report;
      const siblings = hosts.filter(({ report }) => report?.identity === identity);
      const place = { ...alone, poolHosts: siblings.map(({ row }) => row.id) };
      const key = placeKey(host.report, place.node);
      const isDouble = known.has(key);
      known.add(key);
      return isDouble ? { ...place, accepting: false } : place;
    }),
  );
}

/** Says of hosts whose nodes others have why nothing is placed there. */
export function explainDoubles(hosts: readonly Host[]): Host[] {
  const owners = new Map<string, string>();
  return hosts.map((host) => {
    if (host.report?.identity === undefined) return host;
    const doubles = placesOf(host).filter(({ node }) => {
      const key = placeKey(host.report, node);
      const owner = owners.get(key) ?? host.row.id;
      owners.set(key, owner);
      return owner !== host.row.id;
    });
    if (doubles.length === 0 || host.reason !== null) return host;
    const names = doubles.map(({ node }) => node ?? 'its computer').join(', ');
    return { ...host, reason: `Nothing is placed on ${names}: another host has it already.` };
  });
}

const placeKey = (report: HostReport | null, node: string | null) =>
  `${report?.identity ?? ''}/${node ?? ''}`;

function placesOf({ row, online, report }: Host): Place[] {
  if (report === null) return [];
  const extras = JSON.parse(row.extras) as HostExtras;
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
    defaultImage: extras.default_image ?? null,
    sharesFilesystems: row.filesystems_path !== null,
  }));
}
