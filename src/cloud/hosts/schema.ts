// The wire types of hosts, for the dashboard and the CLI.

import { Maybe, OneOf, type Static, Type } from '#lib/schema/schema-builder.ts';

const name = '^[a-z0-9][a-z0-9.\\-]{0,62}$';
const Word = Type.String({ minLength: 1, maxLength: 128, pattern: '^[!-~]+$' });

const hostUrl = '^(unix:/[!-~]+|https://[^\\s/?#@]+)$';

export const HostParams = Type.Object({
  name: Type.String({ maxLength: 128, pattern: '^[!-~]+$' }),
});

export const RemoveQuery = Type.Object({ forget: Type.Optional(OneOf(['true'])) });

export const NewHost = Type.Object(
  {
    name: Type.String({ pattern: name }),
    region: Type.String({ minLength: 1, maxLength: 64 }),
    token: Maybe(Type.String({ minLength: 1, maxLength: 8192, pattern: '^[!-~]+$' })),
    url: Maybe(Type.String({ maxLength: 256, pattern: hostUrl })),
    fingerprint: Maybe(Type.String({ pattern: '^([0-9a-fA-F]{2}:?){31}[0-9a-fA-F]{2}$' })),
    target: Maybe(Word),
    pool: Maybe(Word),
    network: Maybe(Word),
    ovn_uplink: Maybe(Word),
    project: Maybe(Word),
    filesystems_path: Maybe(Type.String({ maxLength: 256, pattern: '^/[^\\u0000-\\u001f]+$' })),
  },
  { additionalProperties: false },
);

export const HostChange = Type.Object(
  { draining: Type.Boolean() },
  { additionalProperties: false },
);

const Nullable = Type.Union([Type.String(), Type.Null()]);

export const HostView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  region: Type.String(),
  driver: OneOf(['sandbox', 'scripted', 'incus']),
  url: Nullable,
  target: Nullable,
  engine: Nullable,
  status: OneOf(['online', 'offline', 'draining']),
  /** True for an offline host as well, whose status can't say so. */
  draining: Type.Boolean(),
  reason: Nullable,
  seen_at: Nullable,
  nodes: Type.Array(
    Type.Object({
      name: Type.String(),
      online: Type.Boolean(),
      vcpus: Type.Integer(),
      vcpus_used: Type.Integer(),
      memory_gib: Type.Integer(),
      memory_gib_used: Type.Integer(),
      storage_gib: Type.Integer(),
      /** The sizes of the disks, which may be more than what is written to them. */
      storage_gib_used: Type.Integer(),
      gpus: Type.Array(
        Type.Object({
          address: Type.String(),
          model: Type.String(),
          memory_gib: Type.Integer(),
          instance_id: Nullable,
          /** True while models on the host use it, instead of an instance. */
          used_by_models: Type.Boolean(),
        }),
      ),
    }),
  ),
  instances: Type.Integer(),
  source: OneOf(['file', 'live', 'builtin']),
});

export const HostChecks = Type.Object({
  ok: Type.Boolean(),
  checks: Type.Array(
    Type.Object({
      name: OneOf(['reachability', 'isolation', 'trust', 'storage', 'network', 'images', 'gpus']),
      ok: Type.Boolean(),
      message: Type.String(),
    }),
  ),
});

export const NetworkNotice = Type.Object({ region: Type.String(), message: Type.String() });

export const ImageParams = Type.Object({
  host: HostParams.properties.name,
  name: HostParams.properties.name,
});

/** One of: an image that the host already has, an image from an image server, or the built-in recipe. */
export const ImageOrigin = Type.Object(
  {
    fingerprint: Maybe(Type.String({ pattern: '^[0-9a-f]{64}$' })),
    /** `images`, `ubuntu`, or an https:// address. */
    remote: Maybe(Word),
    image: Maybe(Word),
    recipe: Maybe(OneOf(['small'])),
  },
  { additionalProperties: false },
);

export const HostImage = Type.Object({
  host: Type.String(),
  region: Type.String(),
  name: Type.String(),
  description: Type.String(),
  architecture: OneOf(['x86_64', 'arm64']),
});

export type ImageOrigin = Static<typeof ImageOrigin>;
export type HostImage = Static<typeof HostImage>;
export type NewHost = Static<typeof NewHost>;
export type HostView = Static<typeof HostView>;
export type NetworkNotice = Static<typeof NetworkNotice>;
export type HostChecks = Static<typeof HostChecks>;
