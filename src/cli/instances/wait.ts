// Polls an instance until it is active and shows its status meanwhile.

import type { Client } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import { startStatusProgress } from '#cli/progress.ts';
import type { Instance } from '#cloud/schema.ts';
import { explainInstances } from './reasons.ts';

/** Slower than the API's limit of one request per second. */
const pollIntervalMs = 1500;
const maxWaitMs = 20 * 60_000;

export async function waitUntilActive(client: Client, id: string): Promise<Instance> {
  const startedAt = Date.now();
  const progress = await startStatusProgress({
    onInterrupt: `Stopped waiting. Instance ${id} keeps booting: see \`millrace instances list\`.`,
  });
  try {
    for (;;) {
      const { data } = await client.get<{ data: Instance }>(`/api/v1/instances/${id}`);
      progress.show(`${data.status}${data.ip === undefined ? '' : ` at ${data.ip}`}`);
      if (data.status === 'active') return data;
      const waitedMs = Date.now() - startedAt;
      if (data.status !== 'booting' || waitedMs > maxWaitMs) {
        const seconds = Math.round(waitedMs / 1000);
        const news = `Instance ${id} is ${data.status} after ${seconds} s. It was not terminated.`;
        throw new CliError([news, ...(await explainInstances([id]))].join('\n'));
      }
      await new Promise((done) => setTimeout(done, pollIntervalMs));
    }
  } finally {
    progress.end();
  }
}
