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
  created_at: number;
}
