// Rows of the cloud: hosts, machines, filesystems and firewalls.

/** The only row, created with the database. Its id marks this installation's machines on shared endpoints. */
export interface InstallationRow {
  id: string;
}

/** A host that machines are placed on: one computer, a cluster, or a group of cluster members. */
export interface HostRow {
  id: string;
  name: string;
  region: string;
  /** A `sandbox` or `scripted` host belongs to one server; every server can reach an `incus` host. */
  driver: 'sandbox' | 'scripted' | 'incus';
  source: 'builtin' | 'file' | 'live';
  /** `https://host:8443` or `unix:/path`; null for a server's own host. */
  url: string | null;
  /** A cluster member, or a group as `@group`. */
  target: string | null;
  /** SHA-256 of the endpoint's certificate, in hex. */
  fingerprint: string | null;
  pool: string | null;
  network: string | null;
  project: string | null;
  /** A directory shared by all such hosts of the region and mounted by the operator. */
  filesystems_path: string | null;
  /** JSON object with what the engine can't report itself; see HostExtras. */
  extras: string;
  /** 1 if no new machines are placed on the host. */
  draining: number;
  created_at: number;
  /** When a server last knew that the host responds. */
  seen_at: number | null;
  status: 'online' | 'offline';
  /** Why the host is offline, as a sentence for people. */
  reason: string | null;
  /** JSON of the host's last report; null before the first one. */
  report: string | null;
}

export type InstanceStatus = 'booting' | 'active' | 'unhealthy' | 'terminating' | 'terminated';

/** The reconciler's queue. A row is due once `due_at` has passed, and claimed until `claimed_until`. */
interface WorkColumns {
  /** Null if there is nothing to do. */
  due_at: number | null;
  claim: string | null;
  claimed_until: number;
  /** Number of consecutive failures. */
  attempts: number;
}

/** Kept after the machine has ended, because usage and bills are read from it. */
export interface InstanceRow extends WorkColumns {
  id: string;
  account_id: string;
  name: string | null;
  status: InstanceStatus;
  /** Why the machine is unhealthy, as a sentence for people. */
  status_reason: string | null;
  region: string;
  host_id: string;
  /** The host's node that runs the machine; null if the host is one computer. */
  node: string | null;
  /** 1 if the machine is unhealthy only because its host does not respond. */
  host_silent: number;
  /** JSON of the instance type as it was offered at launch. */
  type: string;
  type_name: string;
  price_cents_per_hour: number;
  /** The capacity pool that the machine takes from. */
  pool: 'cpu' | 'gpu' | 'emulated';
  /** What the machine really gets, which is less than its type says if the type is emulated. */
  vcpus: number;
  memory_gib: number;
  storage_gib: number;
  /** The key's columns are empty if nobody may log in. */
  ssh_key_id: string;
  ssh_key_name: string;
  ssh_public_key: string;
  /** The requested hostname; null for the default, which is based on the address. */
  hostname: string | null;
  image_id: string;
  /** The driver's name for the image. */
  image: string;
  /** Deleted when the machine is gone. Sealed if the machine belongs to a deployment. */
  user_data: string | null;
  /** JSON list. */
  tags: string;
  /**
   * Reserved at launch and unique among the live machines of its host; shown as `ip` once the machine has it.
   * Empty if the driver chooses the address.
   */
  address: string;
  ip: string | null;
  private_ip: string | null;
  ssh_port: number | null;
  action: 'restart' | 'power-cycle' | null;
  /** When the driver was asked to perform the action; null before. */
  action_started_at: number | null;
  /** 1 if the machine's firewall rules or refused keys are older than the account's. */
  firewall_stale: number;
  launched_at: number;
  /** When the driver accepted the launch. */
  asked_at: number | null;
  booted_at: number | null;
  terminated_at: number | null;
  /** Incremented by every user request, so that the reconciler never overwrites a newer one. */
  version: number;
  last_error: string | null;
  /** The deployment whose engine the machine runs; null for a machine that a person launched. */
  deployment_id: string | null;
  /** Path on the server's computer of the weights that the machine of a deployment sees; null if there are none. */
  weights: string | null;
}

/** One row per GPU in use. Its key prevents two instances from having the same GPU. */
export interface InstanceGpuRow {
  host_id: string;
  /** Empty if the host is one computer. */
  node: string;
  address: string;
  instance_id: string;
}

/** A GPU that models on the host use. */
export interface ModelGpuRow {
  host_id: string;
  address: string;
}

export interface FilesystemRow extends WorkColumns {
  id: string;
  account_id: string;
  name: string;
  region: string;
  /** The host that stores the volume; null until a machine needs it. */
  host_id: string | null;
  /** The only node that has the volume; null if all of the host's nodes have it. */
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

/** Rows to lock, so that only one transaction at a time counts what is limited. */
export interface TurnRow {
  name: string;
}

export interface SshKeyRow {
  id: string;
  account_id: string;
  name: string;
  /** One OpenSSH line. */
  public_key: string;
  /** `SHA256:...`, as ssh-keygen prints it. */
  fingerprint: string;
  created_at: number;
  /** 1 if the private key was generated and handed out here. */
  is_generated: number;
  /** The person who added it; null if the server did, or if it is not known. */
  created_by: string | null;
}

/** A key that no machine of the account accepts. */
export interface RefusedSshKeyRow {
  account_id: string;
  /** `<type> <base64>`, without a comment. */
  public_key: string;
  refused_at: number;
}
