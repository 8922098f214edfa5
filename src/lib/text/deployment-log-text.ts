// What stands in place of the log of a deployment's engine if it has no lines, for the dashboard and the CLI.

/** The log is that of the newest replica of the current revision, or of the last one that failed. */
export const toEmptyLogText = ({ replicas }: { readonly replicas: readonly unknown[] }) =>
  replicas.length === 0
    ? 'No engine is running. The log begins with the next start.'
    : 'The engine has printed nothing yet.';
