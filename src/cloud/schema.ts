// Wire types of the cloud API. Response schemas are closed: strict clients fail on unknown members. Unknown
// members of requests are ignored, because old clients still send some.

import type { TSchema } from 'typebox';
import { Maybe, noNul, OneOf, open, type Static, Type } from '#lib/schema/schema-builder.ts';
import { idPattern } from './errors.ts';

const Text = (minLength: number, maxLength: number) =>
  Type.String({ minLength, maxLength, pattern: noNul.any });
const Id = Type.String({ pattern: idPattern, maxLength: 64 });

/** Every successful response of this API is a 200 with the result in `data`. */
export const ok = <S extends TSchema>(data: S) => ({ 200: Type.Object({ data }) });

export const IdParams = Type.Object({ id: Id });

export const NewSshKey = Type.Object({
  name: Text(1, 64),
  public_key: Maybe(Type.String({ minLength: 1, maxLength: 16_384 })),
});

/** What machines do with a key that is deleted. Without it, a key that they were launched with is not deleted. */
export const SshKeyRemoval = Type.Object({
  machines: Type.Optional(OneOf(['keep', 'refuse'] as const)),
});

export const SshKey = Type.Object({
  id: Type.String(),
  name: Type.String(),
  public_key: Type.String(),
  private_key: Type.Optional(
    Type.String({
      description: 'Only in the response to the request that generated it. Save it with mode 400.',
    }),
  ),
});

export const Region = Type.Object({ name: Type.String(), description: Type.String() });

export const InstanceType = Type.Object({
  name: Type.String(),
  description: Type.String(),
  gpu_description: Type.String(),
  price_cents_per_hour: Type.Integer(),
  specs: Type.Object({
    vcpus: Type.Integer(),
    memory_gib: Type.Integer(),
    storage_gib: Type.Integer(),
    gpus: Type.Integer(),
  }),
});

/** An object keyed by type name. The order of its members is part of the contract. */
export const InstanceTypes = Type.Record(
  Type.String(),
  Type.Object({
    instance_type: InstanceType,
    regions_with_capacity_available: Type.Array(Region),
  }),
);

const ImageChoice = Type.Union([
  Type.Object({ id: Type.String({ maxLength: 64 }) }),
  Type.Object({ family: Type.String({ maxLength: 64 }) }),
]);

const Tag = Type.Object({
  key: Type.String({ maxLength: 55, pattern: '^[a-z][a-z0-9\\-:]+$' }),
  value: Text(0, 128),
});

const Mount = Type.Object({
  mount_point: Type.String({
    maxLength: 256,
    pattern: '^(/home|/lambda/nfs|/data)[/a-zA-Z0-9\\-]*$',
  }),
  file_system_id: Id,
});

const Tags = Type.Array(Tag, { maxItems: 50 });

export const Launch = Type.Object({
  region_name: Type.String({ maxLength: 128 }),
  instance_type_name: Type.String({ maxLength: 128 }),
  ssh_key_names: Type.Array(Text(0, 64), { minItems: 1, maxItems: 1 }),
  file_system_names: Maybe(Type.Array(Type.String({ maxLength: 60 }), { maxItems: 24 })),
  file_system_mounts: Maybe(Type.Array(Mount, { maxItems: 24 })),
  hostname: Maybe(Type.String({ pattern: '^[a-z0-9][0-9a-z\\-]{0,62}$' })),
  name: Maybe(Text(0, 64)),
  image: Maybe(ImageChoice),
  user_data: Maybe(Text(0, 1_048_576)),
  tags: Maybe(Tags),
  firewall_rulesets: Maybe(Type.Array(Type.Object({ id: Id }), { maxItems: 20 })),
  quantity: Maybe(Type.Integer({ minimum: 1 })),
});

export const TagsChange = Type.Object({ tags: Tags }, { additionalProperties: false });
export type TagsChange = Static<typeof TagsChange>;

export const LaunchedIds = Type.Object({ instance_ids: Type.Array(Type.String()) });

const ActionAvailability = Type.Object({
  available: Type.Boolean(),
  reason_code: Type.Optional(Type.String()),
  reason_description: Type.Optional(Type.String()),
});

export const Instance = Type.Object({
  id: Type.String(),
  name: Type.Optional(Type.String()),
  ip: Type.Optional(Type.String()),
  private_ip: Type.Optional(Type.String()),
  ssh_port: Type.Optional(Type.Integer({ description: 'Present only if it is not 22.' })),
  status: OneOf(['booting', 'active', 'unhealthy', 'terminating', 'terminated']),
  ssh_key_names: Type.Array(Type.String()),
  file_system_names: Type.Array(Type.String()),
  file_system_mounts: Type.Optional(
    Type.Array(Type.Object({ mount_point: Type.String(), file_system_id: Type.String() })),
  ),
  region: Region,
  instance_type: InstanceType,
  hostname: Type.Optional(Type.String()),
  is_reserved: Type.Boolean(),
  actions: Type.Object({
    migrate: ActionAvailability,
    rebuild: ActionAvailability,
    restart: ActionAvailability,
    cold_reboot: ActionAvailability,
    terminate: ActionAvailability,
  }),
  tags: Type.Optional(Type.Array(Type.Object({ key: Type.String(), value: Type.String() }))),
  firewall_rulesets: Type.Optional(Type.Array(Type.Object({ id: Type.String() }))),
});

/** Members that are absent or null stay as they are. The tags replace all former ones. */
export const InstanceChange = Type.Object({ name: Maybe(Text(0, 64)), tags: Maybe(Tags) });

/** An empty list is valid: one client sends it when nothing is left to terminate. */
export const InstanceIds = Type.Object({ instance_ids: Type.Array(Id, { maxItems: 1000 }) });

export const NewFilesystem = Type.Object({
  name: Type.String({ minLength: 1, maxLength: 60, pattern: '^[a-zA-Z]+[0-9a-zA-Z\\-]*$' }),
  region: Type.String({ maxLength: 128 }),
});

export const Filesystem = Type.Object({
  id: Type.String(),
  name: Type.String(),
  mount_point: Type.String(),
  created: Type.String(),
  created_by: Type.Object({
    id: Type.String(),
    email: Type.String(),
    status: OneOf(['active', 'deactivated']),
  }),
  is_in_use: Type.Boolean(),
  region: Region,
  bytes_used: Type.Optional(Type.Integer()),
});

export const Image = Type.Object({
  id: Type.String(),
  created_time: Type.String(),
  updated_time: Type.String(),
  name: Type.String(),
  description: Type.String(),
  family: Type.String(),
  version: Type.String(),
  architecture: OneOf(['x86_64', 'arm64']),
  region: Region,
});

const Port = Type.Integer({ minimum: 1, maximum: 65535 });

export const FirewallRule = Type.Object({
  protocol: OneOf(['tcp', 'udp', 'icmp', 'all']),
  port_range: Maybe(Type.Array(Port, { minItems: 2, maxItems: 2 })),
  source_network: Type.String({ maxLength: 64 }),
  description: Text(0, 128),
});

const Rules = Type.Array(FirewallRule, { maxItems: 20 });

/** Rules in responses: absent members are left out. */
export const FirewallRules = Type.Array(
  Type.Object({
    protocol: Type.String(),
    port_range: Type.Optional(Type.Array(Type.Integer())),
    source_network: Type.String(),
    description: Type.String(),
  }),
);

export const NewFirewallRules = Type.Object({ data: Rules });
export const NewRuleset = Type.Object({
  name: Text(1, 64),
  region: Type.String({ maxLength: 128 }),
  rules: Rules,
});
export const RulesetChange = Type.Object({ name: Maybe(Text(1, 64)), rules: Maybe(Rules) });
export const GlobalRulesetChange = Type.Object({ rules: Maybe(Rules) });

export const Ruleset = Type.Object({
  id: Type.String(),
  name: Type.String(),
  region: Region,
  rules: FirewallRules,
  created: Type.String(),
  instance_ids: Type.Array(Type.String()),
});

export const GlobalRuleset = Type.Object({
  id: Type.Literal('global'),
  name: Type.String(),
  rules: FirewallRules,
});

export const AuditEventQuery = Type.Object({
  start: Type.Optional(Type.String({ maxLength: 64 })),
  end: Type.Optional(Type.String({ maxLength: 64 })),
  page_token: Type.Optional(Type.String({ maxLength: 128 })),
  resource_type: Type.Optional(Type.String({ maxLength: 128 })),
});

const Lrn = Type.Union([Type.String(), Type.Null()]);

export const AuditEvent = Type.Object({
  service_name: Type.String(),
  resource_name: Type.String(),
  action: Type.String(),
  catalog_version: Type.String(),
  event_id: Type.String(),
  event_time: Type.String(),
  actor_lrn: Lrn,
  resource_lrns: Type.Array(Type.String()),
  resource_owner_lrn: Lrn,
  request_api_key_lrn: Lrn,
  additional_details: Type.Object({}, open),
});

const PageToken = Type.Union([Type.String(), Type.Null()]);
const Never = Type.Array(Type.Object({}), { maxItems: 0 });

export const MaintenanceEvents = Type.Object({ maintenance_events: Never, page_token: PageToken });
export const TicketList = Type.Object({ tickets: Never, page_token: PageToken });
export const TicketParams = Type.Object({ ticket_id: Id, attachment_id: Type.Optional(Id) });
export const NewTicket = Type.Object({
  subject: Text(1, 255),
  description: Text(1, 65_536),
  type: OneOf(['incident', 'service_request']),
});

const FabricName = Type.String({ pattern: '^[a-z0-9][a-z0-9\\-]{0,31}$' });
export const NewFabric = Type.Object({ name: FabricName, region: Type.String({ maxLength: 128 }) });
export const FabricChange = Type.Object({ name: FabricName });

export type Tag = Static<typeof Tag>;
export type InstanceChange = Static<typeof InstanceChange>;
export type NewSshKey = Static<typeof NewSshKey>;
export type SshKey = Static<typeof SshKey>;
export type InstanceType = Static<typeof InstanceType>;
export type InstanceTypes = Static<typeof InstanceTypes>;
export type ImageChoice = Static<typeof ImageChoice>;
export type Launch = Static<typeof Launch>;
export type Instance = Static<typeof Instance>;
export type Filesystem = Static<typeof Filesystem>;
export type NewFilesystem = Static<typeof NewFilesystem>;
export type Image = Static<typeof Image>;
export type FirewallRule = Static<typeof FirewallRule>;
export type Ruleset = Static<typeof Ruleset>;
export type NewRuleset = Static<typeof NewRuleset>;
export type RulesetChange = Static<typeof RulesetChange>;
export type GlobalRuleset = Static<typeof GlobalRuleset>;
export type AuditEvent = Static<typeof AuditEvent>;
export type AuditEventQuery = Static<typeof AuditEventQuery>;

/** What the dashboard shows about an instance beyond the public API, whose strict clients reject more members. */
export interface InstanceDetail {
  readonly id: string;
  readonly status: string;
  readonly status_reason: string | null;
  /** The last error while the operation is still being retried. */
  readonly last_error: string | null;
  readonly launched_at: string;
  readonly booted_at: string | null;
  readonly price_cents_per_hour: number;
  /** What the machine really gets, which is less than its type says if the type is emulated. */
  readonly vcpus: number;
  readonly memory_gib: number;
  readonly storage_gib: number;
  /** True if the SSH key was generated by this server, so the name of the private key file is known. */
  readonly has_key_file: boolean;
  /** Name of the deployment that the machine runs an engine for; null if a person launched it. */
  readonly deployment: string | null;
}

/** How long an instance existed in a time range, and its cost. Served to the dashboard only. */
export interface InstanceUsage {
  readonly instance_id: string;
  readonly name: string | null;
  readonly instance_type: string;
  readonly region: string;
  readonly status: string;
  readonly price_cents_per_hour: number;
  readonly launched_at: string;
  readonly terminated_at: string | null;
  readonly seconds: number;
  /** Rounded to a hundredth of a cent. */
  readonly cents: number;
}

/** A figure, or a sentence on why it can't be measured. */
export const MeasuredFigure = <Value extends TSchema>(value: Value) =>
  Type.Union([Type.Object({ value }), Type.Object({ unavailable: Type.String() })]);

export type MeasuredFigure<Value> = { readonly value: Value } | { readonly unavailable: string };

export const GpuFigures = Type.Array(
  Type.Object({
    model: Type.String(),
    /** Share of the time in which the GPU computes. */
    busy_percent: Type.Number(),
    /** Memory that all programs together use. */
    memory_bytes: Type.Integer(),
    total_bytes: Type.Integer(),
  }),
);

export type GpuFigures = Static<typeof GpuFigures>;

/** What a machine uses now. Served to the dashboard only. */
export interface InstanceStats {
  /** When the figures were measured. */
  readonly at: string;
  /** CPU time of all processes. Grows from an arbitrary start; a restart may reset it. */
  readonly cpu_ms: MeasuredFigure<number>;
  readonly memory_bytes: MeasuredFigure<number>;
  readonly disk_bytes: MeasuredFigure<number>;
  readonly network: MeasuredFigure<{ received_bytes: number; sent_bytes: number }>;
  readonly gpus: MeasuredFigure<GpuFigures>;
}

/** `data` is null if nothing can be measured; `reason` then says why. */
export interface InstanceStatsResult {
  readonly data: InstanceStats | null;
  readonly reason: string | null;
}
