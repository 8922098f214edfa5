// What stands in place of the log of a deployment's engine if it has no lines, for the dashboard and the CLI.

/** The log belongs to the newest replica: it ends with it, unless the replica failed. */
export const toEmptyLogText = ({ replicas }: { readonly replicas: readonly unknown[] }) =>
  replicas.length === 0
    ? 'No engine is running. The log begins with the next start.'
    : 'The engine has printed nothing yet.';
