// Every table, with its row type. Times are milliseconds since the epoch, ids are 32 hex digits, and lists and objects
// are JSON text: a form that both SQLite and PostgreSQL store. Only migrations create the tables.

import type { Kysely, Transaction } from 'kysely';
import type {
  AccountRow,
  ApiKeyRow,
  AuditEventRow,
  ConversationRow,
  DeviceRow,
  InvitationRow,
  MembershipRow,
  PasswordResetRow,
  PresetRow,
  SessionRow,
  ThrottleRow,
  UserRow,
} from './account-rows.ts';
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
  RefusedSshKeyRow,
  SshKeyRow,
  TurnRow,
} from './cloud-rows.ts';
import type { DeploymentRow, DeploymentRunRow, ReplicaRow, ServerRow } from './deployment-row.ts';
import type {
  BackendRow,
  BackendsVersionRow,
  DrainedBackendRow,
  ModelWeightsRow,
  ServedModelRow,
  WeightPullRow,
} from './model-rows.ts';
import type {
  ResponseEventsRow,
  ResponseItemRow,
  ResponseRunRow,
  ResponseStorageRow,
  StoredResponseRow,
} from './response-rows.ts';
import type {
  SpendRow,
  StoredUsageRow,
  UsageHourRow,
  UsageNameRow,
  UsageProcessRow,
} from './usage-rows.ts';

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
  refused_ssh_keys: RefusedSshKeyRow;
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
  served_models: ServedModelRow;
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
