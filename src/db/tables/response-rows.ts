// Rows of stored responses (Responses API).

/** One response, without its items. */
export interface StoredResponseRow {
  /** `resp_...`, as clients know it. */
  id: string;
  account_id: string;
  /** The response that it continues, which may have been deleted. */
  previous_id: string | null;
  /** A line is a run of responses of which each continues the one before. Its members differ in depth. */
  line_id: string;
  /** Number of responses before this one. */
  depth: number;
  /** JSON list of `[line, depth]`: the lines that lead to this one, each up to a depth. Empty without branches. */
  path: string;
  status: string;
  /** Size of this response with its items. */
  bytes: number;
  /** Size of this response and all before it. */
  chain_bytes: number;
  created_at: number;
  /** The response object as JSON, without `output`. */
  body: string;
}

/** An item of a response: first its own input, then its output. */
export interface ResponseItemRow {
  response_id: string;
  position: number;
  account_id: string;
  id: string;
  is_output: number;
  /** 1 if this server made the id, so that a request may refer to the item. */
  is_ours: number;
  bytes: number;
  /** JSON object. */
  content: string;
}

/** A background response that has not ended. */
export interface ResponseRunRow {
  response_id: string;
  account_id: string;
  key_id: string | null;
  user_id: string | null;
  /** The process that runs it; null while it is queued. */
  runner: string | null;
  lease_until: number | null;
  created_at: number;
  /** The request as JSON, without `input`. */
  request: string;
  /** What it reserved when it arrived, as JSON, for the server that runs it; null if nothing was limited. */
  reservation: string | null;
}

/** Consecutive events of a background response, as they are sent. */
export interface ResponseEventsRow {
  response_id: string;
  /** Sequence numbers of the first and the last event. */
  first: number;
  last: number;
  created_at: number;
  events: string;
}

/** Bytes of all responses of an account. */
export interface ResponseStorageRow {
  account_id: string;
  bytes: number;
}
