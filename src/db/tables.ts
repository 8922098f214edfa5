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
  weight_pulls: WeightPullRow;
  model_weights: ModelWeightsRow;
}

export type Database = Kysely<Tables>;
/** Inside a transaction use only this: SQLite has one connection, and waiting for it here never ends. */
export type Tx = Transaction<Tables>;

export interface AccountRow {
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

export interface ApiKeyRow {
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
