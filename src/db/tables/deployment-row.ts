// The rows of deployments and of their replicas on machines.

/** A model that a server runs by itself. */
export interface DeploymentRow {
  id: string;
  account_id: string;
  /** The server that it was created on. Engines beside a server run there. */
  host_id: string;
  /** The server that runs it now. */
  runner_id: string;
  name: string;
  model_id: string;
  /** Sealed JSON: all settings. */
  spec: string;
  /** The settings before the last change; null if there was none. */
  previous: string | null;
  /** Incremented by every change of the settings. */
  revision: number;
  /** 1 if it must not run. */
  stopped: number;
  /** 1 if it comes from the configuration file. */
  in_file: number;
  created_at: number;
}

/** One of the servers that share the database. */
export interface ServerRow {
  id: string;
  /** Where the others reach it; null if they can't. */
  url: string | null;
  /** Sealed: the key that it accepts from the others; null if they can't reach it. */
  key: string | null;
  /** Time of its last heartbeat. Negative if it was stopped at that time, and 0 if an earlier version stopped it. */
  seen_at: number;
}

/** A replica of a deployment, from its start to its end. Kept for a month. */
export interface DeploymentRunRow {
  /** Id of the replica. */
  id: string;
  deployment_id: string;
  /** Since when its engine loads: later than its start by the time for fetching weights. */
  started_at: number;
  /** Null if it never answered. */
  ready_at: number | null;
  /** When it ended or, while it runs, when this was last written. */
  seen_at: number;
  /** Price of its machine; 0 on the computer of the server. */
  hourly_cents: number;
}

/** A replica on a machine. Written with its instance, and deleted when that is told to terminate. */
export interface ReplicaRow {
  /** Also the id of its instance. */
  id: string;
  deployment_id: string;
  account_id: string;
  /** The server that runs the deployment. */
  host_id: string;
  /** The revision of the deployment that it runs. */
  revision: number;
  /** Sealed JSON: the settings and the engine's key. */
  settings: string;
  started_at: number;
  /** When it answered for the first time; null before. */
  ready_at: number | null;
  /** The step of the ladder that it is on; null if it does not rest. */
  resting: 'asleep' | 'stopped' | null;
  /** Since when it was not needed; null if it does not rest. */
  idle_since: number | null;
}
