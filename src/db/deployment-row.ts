// The row of a deployment.

/** A model that a server runs by itself. */
export interface DeploymentRow {
  id: string;
  account_id: string;
  /** The server whose computer runs the engines. */
  host_id: string;
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

/** A replica of a deployment, from its start to its end. Kept for a month. */
export interface DeploymentRunRow {
  /** Id of the replica. */
  id: string;
  deployment_id: string;
  started_at: number;
  /** Null if it never answered. */
  ready_at: number | null;
  /** When it ended or, while it runs, when this was last written. */
  seen_at: number;
  /** Price of its machine; 0 on the computer of the server. */
  hourly_cents: number;
}
