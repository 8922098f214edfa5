// What the reason of a deployment that still serves is about, for the dashboard and the CLI.

interface Serving {
  readonly revision: number;
  readonly replicas: readonly { readonly revision: number; readonly ready_at: string | null }[];
}

/** It serves by an older revision, or has lost a replica lately. */
export function toFailedPart({ revision, replicas }: Serving): string {
  const isStarted = replicas.some((one) => one.revision === revision && one.ready_at !== null);
  return isStarted ? 'a replica failed' : `revision ${revision} does not start`;
}
