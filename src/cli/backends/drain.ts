// millrace backends drain and resume.

import { Command } from 'commander';
import { createClient } from '#cli/client.ts';
import type { BackendView } from '#inference/backends/schema.ts';
import { toBackendPath } from './path.ts';

export function drainCommand(): Command {
  return new Command('drain')
    .description('Send a backend no new requests; running ones finish')
    .argument('<id>', 'Id as model/name, from `millrace backends list`')
    .action(async (id: string) => {
      const { outstanding } = await setDraining(id, true);
      console.log(`${id} gets no new requests. Requests still running: ${outstanding}.`);
    });
}

export function resumeCommand(): Command {
  return new Command('resume')
    .description('Send requests to a drained backend again')
    .argument('<id>', 'Id as model/name, from `millrace backends list`')
    .action(async (id: string) => {
      await setDraining(id, false);
      console.log(`${id} gets requests again.`);
    });
}

const setDraining = async (id: string, draining: boolean) =>
  createClient('session').patch<BackendView>(await toBackendPath(id), { draining });
