// Rows of models: weights that are pulled and bound, and backends that were added while the server runs.

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

/** A model that has or had a backend: the stand-in does not take its place. */
export interface ServedModelRow {
  model_id: string;
  served_at: number;
}

/** The only row. Every change of the three tables above increments it, so that checking for changes is cheap. */
export interface BackendsVersionRow {
  version: number;
}
