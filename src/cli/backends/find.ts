// Backends as commands list and find them. Model ids and names of weights may contain slashes, so the server's list
// decides where the model ends and the name begins.

import { createClient } from '#cli/client.ts';
import type { Noun } from '#cli/noun.ts';
import { inPages } from '#cli/pages.ts';
import type { BackendView } from '#inference/backends/schema.ts';

export const backends: Noun<BackendView> = {
  noun: 'backend',
  plural: 'backends',
  command: 'millrace backends list',
  needs: 'session',
  argument: [
    '<backend>',
    'Id as model/name, its first characters, or the name, from `millrace backends list`',
  ],
  namesOf: ({ name }) => [name],
  read: inPages('/dashboard/api/backends'),
};

export const readBackends = () => backends.read(createClient(backends.needs));

/** The dashboard uses the same words. */
const words = { healthy: 'healthy', probation: 'retrying', ejected: 'unavailable' } as const;

function toHealthy(failedPercent: number, backend: BackendView): string {
  const { reason, slowness, failing } = backend;
  if (failedPercent > 0) return `failing ${failedPercent}%`;
  if (failing) return 'last request failed';
  if (reason !== null) return 'last check failed';
  return slowness === null ? words.healthy : `slow, ${slowness}x`;
}

/** A backend that fails every request stays healthy for routing if the others fail them too. */
export function toState(backend: BackendView): string {
  const { kind, source, url, draining, health, requests, errors } = backend;
  if (kind === 'stand-in') return 'stand-in';
  // It stands for a deployment.
  if (source === 'deployment' && url === null) return draining ? 'unavailable' : 'no replica ready';
  const percent = Math.round((errors / Math.max(1, requests)) * 100);
  const state = health === 'healthy' ? toHealthy(percent, backend) : words[health];
  return draining ? `draining, ${state}` : state;
}
