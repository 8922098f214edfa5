// Rows of accounts: people, keys, what they may use, what they saved, and what they changed.

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
