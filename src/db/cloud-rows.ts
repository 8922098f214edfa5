// Rows of the cloud: hosts, machines, filesystems, firewall.

/** One row, made with the database: machines on shared endpoints are marked with it. */
export interface InstallationRow {
  id: string;
}

/** What machines are placed on: one computer, a cluster, or a group of one. */
export interface HostRow {
  id: string;
  name: string;
  region: string;
  /** A `sandbox` or `scripted` host belongs to one server; `incus` can be reached by all. */
  driver: 'sandbox' | 'scripted' | 'incus';
  source: 'builtin' | 'file' | 'live';
  /** `https://host:8443` or `unix:/path`; null for a server's own host. */
  url: string | null;
  /** A member or `@group` of a cluster. */
  target: string | null;
  /** SHA-256 of the endpoint's certificate, in hex. */
  fingerprint: string | null;
  pool: string | null;
  network: string | null;
  project: string | null;
  /** A directory that all such hosts of the region share, mounted by the operator. */
  filesystems_path: string | null;
  /** JSON object: what the engine can't tell of itself, see HostExtras. */
  extras: string;
  /** 1: nothing new is placed there. */
  draining: number;
  created_at: number;
  /** When a server last knew that it answers. */
  seen_at: number | null;
  status: 'online' | 'offline';
  /** Why it is offline, for people. */
  reason: string | null;
  /** JSON: what it last said of itself; null before it ever did. */
  report: string | null;
}

export type InstanceStatus = 'booting' | 'active' | 'unhealthy' | 'terminating' | 'terminated';

/** What the reconciler works off: due when `due_at` has come, held while `claimed_until` has not. */
interface WorkColumns {
  /** Null when there is nothing to do. */
  due_at: number | null;
  claim: string | null;
  claimed_until: number;
  /** Failures in a row. */
  attempts: number;
}

/** Kept after its end: usage and bills are read from it. */
export interface InstanceRow extends WorkColumns {
  id: string;
  account_id: string;
  name: string | null;
  status: InstanceStatus;
  /** Why it is unhealthy, for people. */
  status_reason: string | null;
  region: string;
  host_id: string;
  /** Which of the host's nodes; null where it is one computer. */
  node: string | null;
  /** 1: unhealthy only because its host does not answer. */
  host_silent: number;
  /** JSON: the type as it was offered at launch. */
  type: string;
  type_name: string;
  price_cents_per_hour: number;
  /** Which capacity it takes. */
  pool: 'cpu' | 'gpu' | 'emulated';
  /** What the machine really gets; less than its type says when that is emulated. */
  vcpus: number;
  memory_gib: number;
  storage_gib: number;
  ssh_key_id: string;
  ssh_key_name: string;
  ssh_public_key: string;
  /** As asked for; null for the address-based default. */
  hostname: string | null;
  image_id: string;
  /** What its driver calls the image. */
  image: string;
  /** Forgotten when the machine is gone. */
  user_data: string | null;
  /** JSON list. */
  tags: string;
  /** Reserved at launch, unique among the living of its host; shown as `ip` once the machine has it. Empty
   * where the driver chooses. */
  address: string;
  ip: string | null;
  private_ip: string | null;
  ssh_port: number | null;
  action: 'restart' | 'power-cycle' | null;
  /** When the driver was asked for the action; null before. */
  action_started_at: number | null;
  /** 1 when the machine has older rules than the account. */
  firewall_stale: number;
  launched_at: number;
  /** When the driver took the launch. */
  asked_at: number | null;
  booted_at: number | null;
  terminated_at: number | null;
  /** Counts what people asked for, so that the reconciler never overwrites a newer wish. */
  version: number;
  last_error: string | null;
}

/** One row per GPU that is taken: its key keeps two instances from having one. */
export interface InstanceGpuRow {
  host_id: string;
  /** Empty where the host is one computer. */
  node: string;
  address: string;
  instance_id: string;
}

export interface FilesystemRow extends WorkColumns {
  id: string;
  account_id: string;
  name: string;
  region: string;
  /** Where its volume is; null until a machine needs it. */
  host_id: string | null;
  /** The only node that has it; null when all of the host's have. */
  node: string | null;
  state: 'creating' | 'ready' | 'deleting';
  bytes_used: number | null;
  created_at: number;
  created_by: string;
  created_by_email: string;
}

export interface InstanceFilesystemRow {
  instance_id: string;
  filesystem_id: string;
  name: string;
  mount_point: string;
}

export interface FirewallRulesRow {
  account_id: string;
  /** JSON list. */
  rules: string;
}

export interface FirewallRulesetRow {
  id: string;
  account_id: string;
  name: string;
  region: string;
  /** JSON list. */
  rules: string;
  created_at: number;
}

export interface InstanceRulesetRow {
  instance_id: string;
  ruleset_id: string;
}

/** Rows to lock, so that what must be counted is counted by one at a time. */
export interface TurnRow {
  name: string;
}
