// Bodies of the inference API that arrive after the caller has lost the right to send them.

import assert from 'node:assert';
import { test } from 'node:test';
import { createHandClock } from '#test/support/clock.ts';
import { beginPost } from '#test/support/late-body.ts';
import { startTestServer } from '#test/support/server.ts';

const form = [
  '--b\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n',
  '--b\r\ncontent-disposition: form-data; name="file"; filename="a.jsonl"\r\n\r\n{}\r\n--b--\r\n',
].join('');

test('bodies that arrive after the key was revoked are refused, and nothing is stored', async () => {
  const clock = createHandClock();
  const server = await startTestServer({ clock });
  const owner = await server.join();
  const created = await owner('/dashboard/api/api-keys', { json: { label: 'late' } });
  const { id, key } = (await created.json()) as { id: string; key: string };
  const begin = (path: string, body: string, type = 'application/json') =>
    beginPost(
      `${server.url}/v1/${path}`,
      { authorization: `Bearer ${key}`, 'content-type': type },
      body,
    );
  const chat = { model: 'hermes3-8b', messages: [{ role: 'user', content: 'Hello' }] };
  const batch = {
    input_file_id: 'file-1',
    endpoint: '/v1/chat/completions',
    completion_window: '24h',
  };
  const late = [
    await begin('chat/completions', JSON.stringify(chat)),
    await begin('batches', JSON.stringify(batch)),
    await begin('files', form, 'multipart/form-data; boundary=b'),
  ];
  await owner(`/dashboard/api/api-keys/${id}`, { method: 'DELETE' });
  clock.turn(1000);
  for (const finish of late) assert.equal(await finish(), 401);
  assert.deepEqual(((await (await owner('/v1/files')).json()) as { data: unknown }).data, []);
});
