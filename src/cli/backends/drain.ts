// millrace backends drain and resume.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import { report } from '#cli/output.ts';
import type { BackendView } from '#inference/backends/schema.ts';
import { backendArgument, getBackend, toBackendPath } from './find.ts';

export function drainCommand(): Command {
  return new Command('drain')
    .description('Send a backend no new requests; running ones finish')
    .argument(...backendArgument)
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { json }: { json?: true }) => {
      const backend = await setDraining(wanted, true);
      const { id, outstanding } = backend;
      const text = `${id} gets no new requests. Requests still running: ${outstanding}.`;
      report(backend, text, json);
    });
}

export function resumeCommand(): Command {
  return new Command('resume')
    .description('Send requests to a drained backend again')
    .argument(...backendArgument)
    .option('--json', 'Print JSON')
    .action(async (wanted: string, { json }: { json?: true }) => {
      const backend = await setDraining(wanted, false);
      report(backend, `${backend.id} gets requests again.`, json);
    });
}

const setDraining = async (wanted: string, draining: boolean) =>
  createClient('session').patch<BackendView>(toBackendPath(await getBackend(wanted)), {
    draining,
  });
