// Lines of batches take only capacity that no other request waits for, and run in bounded memory.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBatch, toClient, toLines, toText, untilEnded } from '#test/support/batches.ts';
import { startGateway } from '#test/support/gateway.ts';
import { until } from '#test/support/until.ts';

test('while other requests wait for the only backend, no line of a batch starts', async (context) => {
  const { server, upstreams, chat } = await startGateway(context, {
    upstreams: [{ words: 5, delayMs: 50 }],
    backend: { concurrency: 1 },
  });
  const [upstream] = upstreams;
  assert.ok(upstream);
  const client = toClient(server);
  // Three requests at a time, so that at least one waits at every moment.
  const load = Array.from({ length: 3 }, async () => {
    for (let count = 0; count < 10; count++) {
      const response = await chat();
      assert.equal(response.status, 200);
      await response.text();
    }
  });
  await until('the backend is busy', () => upstream.requests.length >= 2);
  const { id } = await createBatch(client, toText(toLines(5)));
  await until('the lines are checked', async () => {
    const { status } = await client.batches.retrieve(id);
    return status === 'in_progress';
  });
  await Promise.all(load);
  const batch = await untilEnded(client, id);
  assert.deepEqual(batch.request_counts, { total: 5, completed: 5, failed: 0 });
  const contents = upstream.requests.map(({ body }) => JSON.stringify(body.messages));
  const firstLine = contents.findIndex((text) => text.includes('line-'));
  const lastOther = contents.findLastIndex((text) => text.includes('Go'));
  // When the last requests are running, none waits for a moment.
  assert.ok(firstLine >= lastOther - 2, `${firstLine} of ${lastOther}`);
});
