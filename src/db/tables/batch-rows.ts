// Rows of files and batches.

/** A file of the inference API. Its content is in `file_blocks`. */
export interface FileRow {
  /** `file-` and 32 hex digits. */
  id: string;
  account_id: string;
  purpose: 'batch' | 'batch_output';
  filename: string;
  /** Length of the content so far. */
  bytes: number;
  /** Only a ready file is visible. A deleted one loses its blocks a few at a time. */
  state: 'writing' | 'ready' | 'deleted';
  created_at: number;
  /** When the file is deleted; null for the results of a batch that runs. */
  expires_at: number | null;
}

/** A piece of a file, at most 256 KiB. Pieces follow each other without gaps. */
export interface FileBlockRow {
  file_id: string;
  /** Offset of the piece's first byte. */
  at: number;
  bytes: Uint8Array;
}

export type BatchState =
  | 'validating'
  | 'in_progress'
  | 'finalizing'
  | 'cancelling'
  | 'completed'
  | 'failed'
  | 'expired'
  | 'cancelled';

export interface BatchRow {
  /** `batch_` and 32 hex digits. */
  id: string;
  account_id: string;
  /** The key that created the batch and whose limits hold; null for a signed-in user. */
  key_id: string | null;
  user_id: string | null;
  /** Path of the endpoint, e.g. `/v1/chat/completions`. */
  endpoint: string;
  /** As the client sent it, e.g. `24h`. */
  completion_window: string;
  /** JSON object; null if the client sent none. */
  metadata: string | null;
  input_file_id: string;
  /** Null until the first line may run. */
  output_file_id: string | null;
  error_file_id: string | null;
  /** How long the results are kept; null for the server's setting. */
  output_keep_ms: number | null;
  state: BatchState;
  /** JSON list of what is wrong with the input; null if nothing is. */
  errors: string | null;
  total: number;
  completed: number;
  failed: number;
  /** Every line that begins before this offset of the input is done. */
  done_offset: number;
  /** JSON list: offsets of later lines that are done. */
  done_ahead: string;
  created_at: number;
  expires_at: number;
  in_progress_at: number | null;
  finalizing_at: number | null;
  completed_at: number | null;
  failed_at: number | null;
  expired_at: number | null;
  cancelling_at: number | null;
  cancelled_at: number | null;
  /** The process that runs the batch, until its lease expires or is renewed. */
  runner: string | null;
  lease_until: number | null;
}
