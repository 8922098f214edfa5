// A stream of the built-in engine outlives its replica.

import assert from 'node:assert/strict';
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import {
  deployedModel,
  openTestDeployments,
  type TestDeployments,
} from '#test/support/deployments.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';
import { until } from '#test/support/until.ts';

/** Kills the processes whose working directory is this folder. */
function killIn(folder: string): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    try {
      if (readlinkSync(`/proc/${pid}/cwd`) === folder) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has ended, or belongs to the kernel.
    }
}

describe('a stream of the built-in engine', () => {
  let server: TestServer;
  let deployments: TestDeployments;
  before(async () => {
    server = await startTestServer();
    deployments = openTestDeployments(server, await server.join());
  });
  after(() => deployments.removeAll());

  test('goes on at another replica when its engine is killed', async () => {
    const settings = { engine: 'builtin', program: null, args: [], min: 2, max: 2 };
    await deployments.create('tested', { ...settings, model: deployedModel });
    const readReplicas = async () => (await deployments.show('tested')).replicas;
    await until('both replicas are ready', async () => {
      const replicas = await readReplicas();
      return replicas.length === 2 && replicas.every(({ state }) => state === 'ready');
    });
    const max_tokens = 600;
    const response = await deployments.chat({
      ...{ stream: true, max_tokens, ignore_eos: true },
      stream_options: { include_usage: true },
    });
    const servedBy = response.headers.get('x-served-by');
    const broken = (await readReplicas()).find(({ id }) => servedBy === `tested-${id.slice(0, 8)}`);
    assert(broken !== undefined, `${servedBy}`);
    const [first, ...others] = await readEvents(response, () =>
      killIn(join(server.dataDir, 'replicas', broken.id)),
    );
    const replicas = await readReplicas();
    assert(!replicas.some(({ id }) => id === broken.id), 'it was killed before the stream ended');
    assert.equal(others.pop(), '[DONE]');
    const events = [first, ...others].map((event) => JSON.parse(event ?? ''));
    assert.deepEqual(new Set(events.map(({ id }) => id)).size, 1);
    assert.equal(events.filter(({ error }) => error !== undefined).length, 0);
    const reasons = events.flatMap(({ choices: [choice] }) => choice?.finish_reason ?? []);
    assert.deepEqual(reasons, ['length']);
    assert.equal(events.at(-1).usage.completion_tokens, max_tokens);
  });
});

/** The data of all events. `afterFirst` is called when the first one has arrived. */
async function readEvents({ body }: Response, afterFirst: () => void): Promise<string[]> {
  assert(body !== null);
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of body) {
    if (text === '') afterFirst();
    text += decoder.decode(bytes, { stream: true });
  }
  return [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => data);
}
