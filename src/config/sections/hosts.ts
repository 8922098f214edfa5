// One LXD or Incus host in the section cloud. An optional name defaults to the usual one of the engine.

import { regions } from '#cloud/regions.ts';
import { section } from '#config/field.ts';
import { OneOf, type Static, Type } from '#lib/schema/schema-builder.ts';

const dotted = '\\d{1,3}(\\.\\d{1,3}){3}';
const Address = (description: string) =>
  Type.Optional(Type.String({ pattern: `^${dotted}$`, description }));
const Name = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 128, description }));

const MigSlice = Type.Object(
  {
    uuid: Type.String({ pattern: '^[!-~]{1,128}$', description: 'UUID of the MIG device.' }),
    profile: Type.String({
      pattern: '^[0-9]+g\\.[0-9]+gb[!-~]*$',
      description: 'MIG profile, e.g. 1g.10gb.',
    }),
  },
  section,
);

const AddressRange = Type.Object(
  {
    subnet: Type.String({
      pattern: `^${dotted}/\\d{1,2}$`,
      description: 'Subnet of the network, e.g. 10.90.1.0/24.',
    }),
    gateway: Address('Gateway of the subnet.'),
    first: Address('First address for instances.'),
    last: Address('Last address for instances.'),
  },
  {
    ...section,
    description: 'Addresses for instances on a bridge that the engine does not manage.',
  },
);

const HostSetting = Type.Object(
  {
    name: Type.String({
      pattern: '^[a-z0-9][a-z0-9.\\-]{0,62}$',
      description: 'Name, unique among all hosts.',
    }),
    region: Type.Unsafe<string>({
      ...OneOf(regions.map(({ name }) => name)),
      description: 'Region of the host.',
    }),
    url: Type.String({
      pattern: '^(unix:/[!-~]+|https://[^\\s/?#@]+)$',
      description: 'Address: https://host:8443, or unix:/path of a socket on this computer.',
    }),
    fingerprint: Type.Optional(
      Type.String({
        pattern: '^([0-9a-fA-F]{2}:?){31}[0-9a-fA-F]{2}$',
        description: "SHA-256 fingerprint of the host's certificate.",
      }),
    ),
    target: Name('Cluster member, or a cluster group as @name.'),
    pool: Name('Storage pool.'),
    network: Name('Network for instances.'),
    ovn_uplink: Name(
      'Physical network without a gateway. On it, each account gets an OVN network that connects its instances across cluster members.',
    ),
    project: Name('Project.'),
    filesystems_path: Type.Optional(
      Type.String({
        pattern: '^/.+$',
        maxLength: 256,
        description: 'Directory that all hosts of the region and this server share.',
      }),
    ),
    profiles: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        maxItems: 32,
        description: 'Profiles applied to every instance.',
      }),
    ),
    addresses: Type.Optional(AddressRange),
    mig: Type.Optional(
      Type.Record(Type.String(), Type.Array(MigSlice, { maxItems: 16 }), {
        propertyNames: { pattern: '^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]$' },
        description: 'MIG devices by the PCI address of their GPU, e.g. 0000:41:00.0.',
      }),
    ),
    default_image: Name('Image of launches that name none.'),
  },
  section,
);

export const HostSettings = Type.Array(HostSetting, { maxItems: 1000 });
export type HostSetting = Static<typeof HostSetting>;
