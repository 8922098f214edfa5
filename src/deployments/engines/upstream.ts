// A replica as a backend.

import type { DeploymentSpec } from '#deployments/ground/spec.ts';
import type { UpstreamSpec } from '#inference/backends/spec.ts';
import { recipes } from './recipes.ts';

export const toUpstream = (
  { model, weight, engine }: DeploymentSpec,
  address: Pick<UpstreamSpec, 'name' | 'url' | 'apiKey'>,
): UpstreamSpec => ({
  source: 'deployment',
  model,
  ...address,
  upstreamModel: model,
  server: recipes[engine].server,
  headers: {},
  weight,
  concurrency: null,
  timeouts: { connectMs: 2_000, firstByteMs: 600_000, idleMs: 300_000 },
  continueStreams: null,
});
