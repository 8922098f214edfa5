// What an endpoint has: its nodes with their sizes, and their GPUs by PCI address. The daemon knows neither a GPU's
// memory nor its MIG slices nor other accelerators; those come from a table and from the operator.

import type { DriverReport, NodeReport } from '#cloud/drivers/driver.ts';
import type { DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import type { ServerInfo } from '#cloud/drivers/incus/daemon/flavor.ts';

/** The operator's list of what the daemon can't list itself. */
export interface GivenGpus {
  /** MIG slices by the GPU's PCI address. A sliced GPU is only handed out slice by slice. */
  readonly mig?: Readonly<Record<string, readonly MigSlice[]>>;
  /** Accelerators by device node, which the machine sees as `/dev/nvidia<n>`. */
  readonly deviceNodes?: readonly Gpu[];
}

export interface MigSlice {
  readonly uuid: string;
  /** E.g. `1g.10gb`. */
  readonly profile: string;
}

type Gpu = NodeReport['gpus'][number];

interface Resources {
  readonly cpu: { readonly total: number };
  readonly memory: { readonly total: number };
  readonly gpu?: { readonly cards?: readonly Card[] | null } | null;
}

interface Card {
  readonly pci_address?: string;
  readonly vendor_id?: string;
  readonly product?: string;
  readonly nvidia?: { readonly model?: string } | null;
}

interface Member {
  readonly server_name: string;
  readonly url: string;
  readonly status: string;
  readonly groups?: readonly string[] | null;
}

const gib = 1024 ** 3;
const nvidiaVendor = '10de';

export interface InventoryOptions {
  readonly pool: string;
  readonly target: string | null;
  readonly gpus: GivenGpus;
}

export async function takeInventory(
  client: DaemonClient,
  info: ServerInfo,
  options: InventoryOptions,
): Promise<Pick<DriverReport, 'vcpus' | 'memoryGib' | 'storageGib' | 'gpus' | 'nodes' | 'urls'>> {
  if (!info.environment?.server_clustered) {
    const { name: _, online: __, ...only } = await lookAt(client, 'this', null, options);
    return only;
  }
  const members = await client.get<Member[]>('/1.0/cluster/members', { recursion: '1' });
  const wanted = members.filter((member) => isTarget(member, options.target));
  const nodes = await Promise.all(
    wanted.map(async ({ server_name: name, status }) =>
      status === 'Online'
        ? lookAt(client, name, name, options).catch(() => offline(name))
        : offline(name),
    ),
  );
  const sum = (of: (node: NodeReport) => number) => nodes.reduce((all, node) => all + of(node), 0);
  return {
    vcpus: sum(({ vcpus }) => vcpus),
    memoryGib: sum(({ memoryGib }) => memoryGib),
    storageGib: sum(({ storageGib }) => storageGib),
    gpus: nodes.flatMap(({ gpus }) => gpus),
    nodes,
    urls: members.map(({ url }) => url),
  };
}

function isTarget({ server_name, groups }: Member, target: string | null): boolean {
  if (target === null) return true;
  return target.startsWith('@') ? (groups ?? []).includes(target.slice(1)) : server_name === target;
}

const offline = (name: string): NodeReport => ({
  name,
  online: false,
  vcpus: 0,
  memoryGib: 0,
  storageGib: 0,
  gpus: [],
});

async function lookAt(
  client: DaemonClient,
  name: string,
  target: string | null,
  { pool, gpus }: InventoryOptions,
): Promise<NodeReport> {
  const [resources, storage] = await Promise.all([
    client.get<Resources>('/1.0/resources', { target }),
    client.get<{ space: { total: number } }>(
      `/1.0/storage-pools/${encodeURIComponent(pool)}/resources`,
      { target },
    ),
  ]);
  return {
    name,
    online: true,
    vcpus: resources.cpu.total,
    memoryGib: Math.floor(resources.memory.total / gib),
    storageGib: Math.floor(storage.space.total / gib),
    gpus: [...toGpus(resources.gpu?.cards ?? [], gpus.mig ?? {}), ...(gpus.deviceNodes ?? [])],
  };
}

export function toGpus(cards: readonly Card[], mig: NonNullable<GivenGpus['mig']>): Gpu[] {
  return cards
    .filter(({ vendor_id, pci_address }) => vendor_id === nvidiaVendor && pci_address)
    .flatMap((card): Gpu[] => {
      const pci = card.pci_address!;
      const model = modelOf(card);
      const slices = mig[pci] ?? [];
      if (slices.length === 0) return [{ address: pci, model, memoryGib: memoryOf(model) }];
      return slices.map(({ uuid, profile }) => ({
        address: `${pci}/${uuid}`,
        model: `${model} MIG ${profile}`,
        memoryGib: Number(/\.(\d+)gb/i.exec(profile)?.[1] ?? 0),
      }));
    })
    .sort((one, other) => (one.address < other.address ? -1 : 1));
}

/** The vendor's name if its driver is loaded, otherwise the name in brackets of the PCI list. */
function modelOf({ nvidia, product }: Card): string {
  if (nvidia?.model) return nvidia.model;
  const listed = /\[([^\]]+)\]/.exec(product ?? '')?.[1] ?? product ?? 'GPU';
  return `NVIDIA ${listed}`;
}

const memories: readonly (readonly [RegExp, number])[] = [
  [/\b(\d+) ?GB\b/i, 0],
  [/\bB300\b/, 288],
  [/\bB200\b/, 180],
  [/\bH200\b/, 141],
  [/\bGH200\b/, 96],
  [/\bH100\b/, 80],
  [/\bA100\b/, 40],
  [/\b(L40S?|A40|RTX A6000|RTX 6000 Ada)\b/, 48],
  [/\b(A10G?|L4|RTX 4090|RTX 3090|Quadro RTX 6000|A30)\b/, 24],
  [/\b(T4|V100)\b/, 16],
];

function memoryOf(model: string): number {
  const found = memories.find(([pattern]) => pattern.test(model));
  if (!found) return 0;
  return found[1] || Number(found[0].exec(model)?.[1] ?? 0);
}
