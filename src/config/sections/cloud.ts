// The cloud API at /api/v1 and the hosts of its instances: the section cloud.

import { regions } from '#cloud/regions.ts';
import { NullableString, section } from '#config/field.ts';
import { OneOf, Type } from '#lib/schema/schema-builder.ts';
import { type HostSetting, HostSettings } from './hosts.ts';

const accountLimits = {
  rate_limit: Type.Boolean({
    default: true,
    description:
      'Limit each account to requests_per_second, and to one launch per launch_interval_seconds. request_burst and launch_burst say how many may come at once.',
  }),
  requests_per_second: Type.Number({
    default: 1,
    exclusiveMinimum: 0,
    maximum: 100_000,
    description: 'API requests per second and account, if rate_limit is on.',
  }),
  request_burst: Type.Integer({
    default: 10,
    minimum: 1,
    maximum: 100_000,
    description:
      'Requests of an account that may come at once, after as many seconds without one. Tools such as Terraform send a few in parallel and give up if one is refused.',
  }),
  launch_interval_seconds: Type.Number({
    default: 10,
    minimum: 0,
    maximum: 86_400,
    description: 'Seconds between two launches of an account, if rate_limit is on.',
  }),
  launch_burst: Type.Integer({
    default: 1,
    minimum: 1,
    maximum: 100_000,
    description:
      'Launches of an account that may come at once, after as many launch_interval_seconds without one. Terraform sends all machines of a plan in parallel and gives up if one is refused.',
  }),
  ssh_keys_per_account: Type.Integer({
    default: 1024,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Maximum number of SSH keys of an account.',
  }),
  instances_per_account: Type.Integer({
    default: 100,
    minimum: 0,
    maximum: 60_000,
    description: 'Maximum number of instances of an account at the same time.',
  }),
  filesystems_per_account: Type.Integer({
    default: 24,
    minimum: 0,
    maximum: 10_000,
    description: 'Maximum number of filesystems of an account.',
  }),
  firewall_rulesets_per_account: Type.Integer({
    default: 100,
    minimum: 0,
    maximum: 10_000,
    description: 'Maximum number of firewall rulesets of an account.',
  }),
};

const ownHost = {
  driver: Type.Unsafe<'sandbox' | 'scripted' | 'none'>({
    ...OneOf(['sandbox', 'scripted', 'none']),
    default: 'sandbox',
    description:
      'What runs instances on this computer. sandbox uses Linux namespaces. none runs them only on other hosts. scripted is for tests: it records instances and runs nothing.',
  }),
  disk_reserve_gib: Type.Number({
    default: 1,
    minimum: 0,
    maximum: 1_000_000,
    description:
      'Disk space of this computer in GiB, in data_dir, that machines and filesystems leave free. What does not fit beside it is not launched here.',
  }),
  filesystem_gib: Type.Unsafe<number | null>({
    type: ['number', 'null'],
    minimum: 1,
    maximum: 1_000_000,
    default: null,
    description:
      'Size in GiB of new filesystems on this computer. If null, a sixteenth of the free disk space, but at least 1 GiB. Takes effect where the server runs as root.',
  }),
  machines_disk_gib: Type.Unsafe<number | null>({
    type: ['number', 'null'],
    minimum: 1,
    maximum: 1_000_000,
    default: null,
    description:
      'Disk space of this computer in GiB that instance types divide among them. If null, half of what is free in data_dir at the first start, and the same from then on, so that a type always has the same disk.',
  }),
  host_name: NullableString("Name of this host. If null, the computer's hostname."),
};

const otherHosts = {
  hosts: Type.Unsafe<readonly HostSetting[]>({
    ...HostSettings,
    default: [],
    description:
      'LXD and Incus hosts that are defined in this file. Add others while the server runs, with `millrace hosts add`. See docs/scaling-out.md.',
  }),
  host_grace_seconds: Type.Integer({
    default: 15,
    minimum: 1,
    maximum: 3600,
    description: 'Seconds that a host may be unreachable before its instances become unhealthy.',
  }),
  client_certificate: NullableString(
    'PEM file with the certificate that identifies this server to hosts. It must be the same for all servers on one database. If null, one is created in data_dir.',
  ),
  client_key: NullableString('PEM file with the private key of client_certificate.'),
};

const offer = {
  isolation: Type.Unsafe<'auto' | 'none'>({
    ...OneOf(['auto', 'none']),
    default: 'auto',
    description:
      'Isolation of sandboxes. auto uses Linux namespaces and refuses to launch where they are not available. none runs sandboxes as plain processes; use it only among people who trust each other.',
  }),
  nested_namespaces: Type.Boolean({
    default: false,
    description:
      'Let sandboxes create namespaces, mounts and packet filters of their own, e.g. to run containers inside. This exposes more of the kernel to tenants.',
  }),
  share_opt: Type.Boolean({
    default: false,
    description:
      "Let sandboxes read this host's /opt, in place of their own. They see what any user of the host can read there. If the server is not root, they also see what only its own user can read there, such as a millrace.yaml with keys.",
  }),
  reserved_memory_gib: Type.Unsafe<number | null>({
    type: ['number', 'null'],
    minimum: 0,
    default: null,
    description:
      'Memory of this host, in GiB, that sandboxes leave to it. If null, a sixteenth, but at least 1 GiB. At most half of the memory is reserved.',
  }),
  region: Type.Unsafe<string>({
    ...OneOf(regions.map(({ name }) => name)),
    default: 'us-west-1',
    description:
      'Region that this host reports: a code that clients know, such as us-west-1 or europe-central-1.',
  }),
  emulate: Type.Boolean({
    default: false,
    description:
      'Offer every instance type of the public catalog, without its hardware. For trying out clients.',
  }),
  emulated_instances: Type.Integer({
    default: 16,
    minimum: 1,
    maximum: 10_000,
    description: 'Maximum number of emulated instances at the same time.',
  }),
  vcpu_overcommit: Type.Number({
    default: 1,
    minimum: 1,
    maximum: 64,
    description:
      'vCPUs that machines without GPUs may have together, for each vCPU of their host. At 4, a host of 8 vCPUs takes 32 machines of one vCPU, each with a quarter of the memory and disk that it would have at 1. They share the processors when all are busy.',
  }),
  prices: Type.Unsafe<Record<string, number>>({
    type: 'object',
    additionalProperties: { type: 'integer', minimum: 0, maximum: 10_000_000 },
    default: {},
    description:
      'Prices by instance type, in US cents per hour, e.g. {"cpu_1x_general": 5}. Types that are not listed keep their own price.',
  }),
};

export const CloudSettings = Type.Object(
  { ...accountLimits, ...ownHost, ...otherHosts, ...offer },
  { ...section, description: 'The cloud API at /api/v1.' },
);
