// Watches one instance until it is active, and shows how far it is: one changing line on a terminal, a
// line per change elsewhere.

import type { Client } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import type { Instance } from '#cloud/schema.ts';
import { explainInstances } from './reasons.ts';

/** Slower than the API's limit of one request a second. */
const pollMs = 1500;
const giveUpMs = 20 * 60_000;

export async function waitFor(client: Client, id: string): Promise<Instance> {
  const started = Date.now();
  const show = createProgress();
  for (;;) {
    const { data } = await client.get<{ data: Instance }>(`/api/v1/instances/${id}`);
    const seconds = Math.round((Date.now() - started) / 1000);
    show(`${data.status}${data.ip === undefined ? '' : ` at ${data.ip}`}`, seconds);
    if (data.status === 'active') {
      show.end();
      return data;
    }
    if (data.status !== 'booting' || Date.now() - started > giveUpMs) {
      show.end();
      const news = `Instance ${id} is ${data.status} after ${seconds} s. It was not ended.`;
      throw new CliError([news, ...(await explainInstances([id]))].join('\n'));
    }
    await new Promise((done) => setTimeout(done, pollMs));
  }
}

function createProgress() {
  const terminal = process.stderr.isTTY;
  let last = '';
  const show = (text: string, seconds: number) => {
    if (terminal) process.stderr.write(`\r\x1b[K${text}, ${seconds} s`);
    else if (text !== last) process.stderr.write(`${text}\n`);
    last = text;
  };
  const end = () => void (terminal && process.stderr.write('\n'));
  return Object.assign(show, { end });
}
