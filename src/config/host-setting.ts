// One LXD or Incus host in the file. What is left out has the engine's usual name.

import { regions } from '#cloud/regions.ts';
import { Type } from '#lib/schema/schema-builder.ts';
import { OneOf, type Static } from '#lib/schema/validation-error.ts';

const section = { additionalProperties: false } as const;
const dotted = '\\d{1,3}(\\.\\d{1,3}){3}';
const Address = Type.Optional(Type.String({ pattern: `^${dotted}$` }));
const Word = Type.Optional(Type.String({ minLength: 1, maxLength: 128 }));

const MigSlice = Type.Object(
  {
    uuid: Type.String({ pattern: '^[!-~]{1,128}$' }),
    profile: Type.String({ pattern: '^[0-9]+g\\.[0-9]+gb[!-~]*$' }),
  },
  section,
);

const HostSetting = Type.Object(
  {
    name: Type.String({ pattern: '^[a-z0-9][a-z0-9.\\-]{0,62}$' }),
    region: Type.Unsafe<string>(OneOf(regions.map(({ name }) => name))),
    url: Type.String({ pattern: '^(unix:/[!-~]+|https://[^\\s/?#@]+)$' }),
    fingerprint: Type.Optional(Type.String({ pattern: '^([0-9a-fA-F]{2}:?){31}[0-9a-fA-F]{2}$' })),
    target: Word,
    pool: Word,
    network: Word,
    project: Word,
    filesystems_path: Type.Optional(Type.String({ pattern: '^/.+$', maxLength: 256 })),
    profiles: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { maxItems: 32 })),
    addresses: Type.Optional(
      Type.Object(
        {
          subnet: Type.String({ pattern: `^${dotted}/\\d{1,2}$` }),
          gateway: Address,
          first: Address,
          last: Address,
        },
        section,
      ),
    ),
    mig: Type.Optional(
      Type.Record(Type.String(), Type.Array(MigSlice, { maxItems: 16 }), {
        propertyNames: { pattern: '^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]$' },
      }),
    ),
    default_image: Word,
  },
  section,
);

export const HostSettings = Type.Array(HostSetting, { maxItems: 1000 });
export type HostSetting = Static<typeof HostSetting>;
