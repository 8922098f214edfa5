// Every table, as rows. Times are milliseconds since the epoch, ids are 32 hex, lists and objects are JSON
// text: one shape that SQLite and PostgreSQL both hold. Migrations make these; nothing else does.

import type { Kysely, Transaction } from 'kysely';

export interface Tables {
  accounts: AccountRow;
  users: UserRow;
  memberships: MembershipRow;
  sessions: SessionRow;
  invitations: InvitationRow;
  api_keys: ApiKeyRow;
  throttles: ThrottleRow;
  audit_events: AuditEventRow;
  ssh_keys: SshKeyRow;
  installation: InstallationRow;
  hosts: HostRow;
  instances: InstanceRow;
  instance_gpus: InstanceGpuRow;
  filesystems: FilesystemRow;
  instance_filesystems: InstanceFilesystemRow;
  firewall_rules: FirewallRulesRow;
  firewall_rulesets: FirewallRulesetRow;
  instance_rulesets: InstanceRulesetRow;
  turns: TurnRow;
  weight_pulls: WeightPullRow;
  model_weights: ModelWeightsRow;
  backends: BackendRow;
  drained_backends: DrainedBackendRow;
  backends_version: BackendsVersionRow;
  usage_requests: UsageRequestRow;
  usage_hours: UsageHourRow;
  spend: SpendRow;
  usage_processes: UsageProcessRow;
}

export type Database = Kysely<Tables>;
/** Inside a transaction use only this: SQLite has one connection, and waiting for it here never ends. */
export type Tx = Transaction<Tables>;

/** Null is no limit. */
export interface LimitColumns {
  requests_per_minute: number | null;
  tokens_per_minute: number | null;
  concurrent_requests: number | null;
  /** Billionths of a US dollar. */
  monthly_budget_nano: number | null;
}

export interface AccountRow extends LimitColumns {
  id: string;
  name: string;
  created_at: number;
}

export interface UserRow {
  id: string;
  /** Lower case. */
  email: string;
  password_hash: string;
  created_at: number;
}

export interface MembershipRow {
  account_id: string;
  user_id: string;
  role: string;
  created_at: number;
}

export interface SessionRow {
  id: string;
  token_hash: string;
  user_id: string;
  account_id: string;
  address: string;
  user_agent: string;
  created_at: number;
  expires_at: number;
}

export interface InvitationRow {
  id: string;
  account_id: string;
  token_hash: string;
  role: string;
  /** Null for the set-up link, which nobody invited. */
  created_by: string | null;
  created_at: number;
  expires_at: number;
}

export interface ApiKeyRow extends LimitColumns {
  id: string;
  account_id: string;
  label: string;
  hash: string;
  /** The masked key, to recognise it by. */
  hint: string;
  /** JSON list. */
  scopes: string;
  /** Null for the first key, which the server made. */
  created_by: string | null;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  last_used_at: number | null;
}

export interface ThrottleRow {
  key: string;
  attempts: number;
  window_started_at: number;
}

export interface AuditEventRow {
  id: string;
  /** Null when no account is known, such as a login with an unknown address. */
  account_id: string | null;
  at: number;
  /** `<resource>.<what happened>`, e.g. `api_key.created`. */
  action: string;
  resource_id: string | null;
  user_id: string | null;
  api_key_id: string | null;
  address: string;
  /** JSON object. */
  details: string;
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
}

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
export interface WeightPullRow {
  id: string;
  account_id: string;
  /** The folder it goes to: servers on one database may each have their own disk. */
  store_id: string;
  /** The model it shall serve; null when it is only to be on disk. */
  model_id: string | null;
  /** What it is called in the store. */
  name: string;
  repo: string;
  commit_id: string;
  /** JSON list. */
  files: string;
  bytes_total: number;
  /** Written about once a second. */
  bytes_done: number;
  state: string;
  error: string | null;
  /** The process that works on it, until the lease ends or is renewed. */
  runner: string | null;
  lease_until: number | null;
  created_at: number;
  updated_at: number;
}

export interface ModelWeightsRow {
  store_id: string;
  model_id: string;
  name: string;
  created_at: number;
}

/** A backend that was added while the server ran. Those of the configuration have no row. */
export interface BackendRow {
  id: string;
  model_id: string;
  name: string;
  url: string;
  /** What the upstream calls the model. */
  upstream_model: string;
  server: string;
  /** Sealed JSON: the key and the headers. */
  secrets: string;
  weight: number;
  concurrency: number | null;
  connect_ms: number;
  first_byte_ms: number;
  idle_ms: number;
  /** 1, 0, or null: as the model and the kind of server have it. */
  continue_streams: number | null;
  created_at: number;
}

/** Backends that take no new request, wherever they come from. */
export interface DrainedBackendRow {
  model_id: string;
  name: string;
  drained_at: number;
}

/** One row, counted up by every change of the two tables above: cheap to look at. */
export interface BackendsVersionRow {
  version: number;
}

export type UsageStatus = 'done' | 'aborted' | 'failed' | 'running' | 'interrupted';

/** One inference request. */
export interface UsageRequestRow {
  /** The request's id, which its answer carries as `x-request-id`. */
  id: string;
  account_id: string;
  /** Null for a person's session. */
  key_id: string | null;
  user_id: string | null;
  operation: string;
  /** As asked for. */
  model: string;
  served_model: string;
  /** Empty when none had it yet. */
  backend: string;
  /** When it began: this decides its hour and its month. */
  at: number;
  status: UsageStatus;
  code: string | null;
  prompt_tokens: number;
  completion_tokens: number;
  /** Those of the prompt that an engine had already. */
  cached_tokens: number;
  /** Null when nothing was generated. */
  first_token_ms: number | null;
  duration_ms: number;
  /** Billionths of a US dollar. */
  cost_nano: number;
  /** Who works on it, while it runs. */
  process: string | null;
}

/** Sums of the requests that began in an hour and have ended. */
export interface UsageHourRow {
  account_id: string;
  hour: number;
  /** Empty for sessions. */
  key_id: string;
  model: string;
  backend: string;
  requests: number;
  /** Failed and interrupted ones. */
  errors: number;
  aborted: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  cost_nano: number;
  /** The sum over `first_tokens` requests. */
  first_token_ms: number;
  first_tokens: number;
}

/** Sums of the requests that began in a month and have ended. */
export interface SpendRow {
  account_id: string;
  /** Empty for the account as a whole. */
  key_id: string;
  /** UTC, e.g. `2026-11`. */
  month: string;
  cost_nano: number;
  /** Read and generated. */
  tokens: number;
  requests: number;
}

/** Servers that live, so that what others left running can be told. */
export interface UsageProcessRow {
  id: string;
  last_seen: number;
}
