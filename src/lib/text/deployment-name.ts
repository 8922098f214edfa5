// The name of a deployment that is given none. The CLI and the dashboard derive the same one.

const maxLength = 63;

/** `meta-llama/Llama-3.1-8B` becomes `llama-3-1-8b`. */
export const toDeploymentName = (model: string) =>
  (model.split('/').at(-1) ?? model)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, maxLength)
    .replace(/-$/, '');
