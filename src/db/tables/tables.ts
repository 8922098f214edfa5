// Every table, as row types. Times are milliseconds since the epoch, ids are 32 hex digits, and lists and objects
// are JSON text: a form that both SQLite and PostgreSQL store. Only migrations create the tables.

import type { Kysely, Transaction } from 'kysely';
import type { BatchRow, FileBlockRow, FileRow } from './batch-rows.ts';
import type {
  FilesystemRow,
  FirewallRulesetRow,
  FirewallRulesRow,
  HostRow,
  InstallationRow,
  InstanceFilesystemRow,
  InstanceGpuRow,
  InstanceRow,
  InstanceRulesetRow,
  ModelGpuRow,
  TurnRow,
} from './cloud-rows.ts';
import type { DeploymentRow, DeploymentRunRow, ReplicaRow, ServerRow } from './deployment-row.ts';
import type {
  ResponseEventsRow,
  ResponseItemRow,
  ResponseRunRow,
  ResponseStorageRow,
  StoredResponseRow,
} from './response-rows.ts';

export interface Tables {
  accounts: AccountRow;
  users: UserRow;
  memberships: MembershipRow;
  sessions: SessionRow;
  devices: DeviceRow;
  password_resets: PasswordResetRow;
  invitations: InvitationRow;
  api_keys: ApiKeyRow;
  conversations: ConversationRow;
  presets: PresetRow;
  throttles: ThrottleRow;
  audit_events: AuditEventRow;
  ssh_keys: SshKeyRow;
  installation: InstallationRow;
  hosts: HostRow;
  instances: InstanceRow;
  instance_gpus: InstanceGpuRow;
  model_gpus: ModelGpuRow;
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
  deployments: DeploymentRow;
  deployment_runs: DeploymentRunRow;
  replicas: ReplicaRow;
  servers: ServerRow;
  files: FileRow;
  file_blocks: FileBlockRow;
  batches: BatchRow;
  usage_requests: StoredUsageRow;
  usage_names: UsageNameRow;
  usage_hours: UsageHourRow;
  spend: SpendRow;
  usage_processes: UsageProcessRow;
  responses: StoredResponseRow;
  response_items: ResponseItemRow;
  response_runs: ResponseRunRow;
  response_events: ResponseEventsRow;
  response_storage: ResponseStorageRow;
}

export type Database = Kysely<Tables>;
/** The only handle to use inside a transaction: SQLite has one connection, so waiting for it here deadlocks. */
export type Tx = Transaction<Tables>;

/** Null means no limit. */
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

/** A browser or CLI that has signed in as the user. */
export interface DeviceRow {
  token_hash: string;
  user_id: string;
  last_used_at: number;
}

export interface PasswordResetRow {
  user_id: string;
  token_hash: string;
  expires_at: number;
}

export interface InvitationRow {
  id: string;
  account_id: string;
  token_hash: string;
  role: string;
  /** Null for the set-up link, which has no sender. */
  created_by: string | null;
  created_at: number;
  expires_at: number;
}

export interface ApiKeyRow extends LimitColumns {
  id: string;
  account_id: string;
  label: string;
  hash: string;
  /** The masked key, by which people recognise it. */
  hint: string;
  /** JSON list. */
  scopes: string;
  /** Null for the first key, which the server created. */
  created_by: string | null;
  created_at: number;
  expires_at: number | null;
  revoked_at: number | null;
  /** 1 if requests that were accepted before the key was revoked may finish. */
  lets_finish: number;
  last_used_at: number | null;
}

/** A conversation of the playground. */
export interface ConversationRow {
  id: string;
  account_id: string;
  user_id: string;
  name: string;
  /** JSON object. */
  content: string;
  /** The name and the messages in lower case, without images and reasoning. */
  search_text: string;
  /** Length of the content. */
  bytes: number;
  /** 1 if every member of the account may read it. */
  shared: number;
  /** Incremented by each change of the content. */
  revision: number;
  created_at: number;
  updated_at: number;
}

/** Settings of the playground, saved under a name. */
export interface PresetRow {
  id: string;
  account_id: string;
  user_id: string;
  name: string;
  /** JSON object. */
  settings: string;
}

export interface ThrottleRow {
  key: string;
  attempts: number;
  window_started_at: number;
}

export interface AuditEventRow {
  id: string;
  /** Null if no account is known, for example for a sign-in with an unknown email address. */
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
  /** 1 if the private key was generated and handed out here. */
  is_generated: number;
}

export interface WeightPullRow {
  id: string;
  account_id: string;
  /** The store the weights go to. Servers on one database may each have their own disk. */
  store_id: string;
  /** The model that the weights will serve; null if they are only stored on disk. */
  model_id: string | null;
  /** Name of the weights in the store. */
  name: string;
  repo: string;
  commit_id: string;
  /** JSON list. */
  files: string;
  /** For the hub, sealed; null once the pull has ended, and if it has none. */
  hub_token: string | null;
  /** 1 if it was made for deployments, with which it ends. */
  for_deployments: number;
  bytes_total: number;
  /** Written about once a second. */
  bytes_done: number;
  state: string;
  error: string | null;
  /** The process that runs the pull, until its lease expires or is renewed. */
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

/** A backend that was added at runtime. Backends from the configuration have no row. */
export interface BackendRow {
  id: string;
  model_id: string;
  name: string;
  url: string;
  /** The upstream's name for the model. */
  upstream_model: string;
  server: string;
  /** Sealed JSON: the key and the headers. */
  secrets: string;
  weight: number;
  concurrency: number | null;
  connect_ms: number;
  first_byte_ms: number;
  idle_ms: number;
  /** 1, 0, or null for the default of the model and the kind of server. */
  continue_streams: number | null;
  created_at: number;
}

/** Backends that receive no new requests, wherever they are configured. */
export interface DrainedBackendRow {
  model_id: string;
  name: string;
  drained_at: number;
}

/** The only row. Every change of the two tables above increments it, so that checking for changes is cheap. */
export interface BackendsVersionRow {
  version: number;
}

export type UsageStatus = 'done' | 'aborted' | 'failed' | 'refused' | 'running' | 'interrupted';

/** A request as it is stored: its texts are refs of `usage_names`. */
export interface StoredUsageRow
  extends Omit<
    UsageRequestRow,
    | 'account_id'
    | 'key_id'
    | 'user_id'
    | 'operation'
    | 'model'
    | 'served_model'
    | 'backend'
    | 'code'
  > {
  account_ref: number;
  key_ref: number | null;
  user_ref: number | null;
  operation_ref: number;
  model_ref: number;
  served_model_ref: number;
  backend_ref: number;
  code_ref: number | null;
}

export interface UsageNameRow {
  ref: number;
  name: string;
  /** The last day on which a request with this name began, in days since the epoch. */
  last_day: number;
}

/** One inference request. */
export interface UsageRequestRow {
  /** The request's id, which the response carries as `x-request-id`. */
  id: string;
  account_id: string;
  /** Null for a dashboard session. */
  key_id: string | null;
  user_id: string | null;
  operation: string;
  /** The model as requested. */
  model: string;
  served_model: string;
  /** Empty if no backend had received the request yet. */
  backend: string;
  /** When the request began, which determines its hour and its month. */
  at: number;
  status: UsageStatus;
  code: string | null;
  prompt_tokens: number;
  completion_tokens: number;
  /** Prompt tokens that the engine had cached. */
  cached_tokens: number;
  /** Null if nothing was generated, and for a plain response of an upstream, whose tokens come at once. */
  first_token_ms: number | null;
  duration_ms: number;
  /** Billionths of a US dollar. */
  cost_nano: number;
  /** 1 if tokens and cost are the reserved amounts, because the used amounts are unknown. */
  reserved: 0 | 1;
  /** Id of the process that serves the request; null once it has ended. */
  process: string | null;
}

/** Sums over the requests that began in an hour and have ended. */
export interface UsageHourRow {
  account_id: string;
  hour: number;
  /** Empty for sessions. */
  key_id: string;
  model: string;
  backend: string;
  requests: number;
  /** Requests that failed, were refused or were interrupted. */
  errors: number;
  aborted: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  cost_nano: number;
  /** Sum over `first_tokens` requests. */
  first_token_ms: number;
  first_tokens: number;
}

/** Sums over the requests that began in a month and have ended. */
export interface SpendRow {
  account_id: string;
  /** Empty for the account as a whole. */
  key_id: string;
  /** UTC, e.g. `2026-11`. */
  month: string;
  cost_nano: number;
  /** Prompt and generated tokens. */
  tokens: number;
  requests: number;
}

/** Live servers. Requests of any other server are orphans. */
export interface UsageProcessRow {
  id: string;
  last_seen: number;
}
