// Files as the SDK of OpenAI uploads, lists, downloads and deletes them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { databases } from '#test/support/databases.ts';
import { beginPost } from '#test/support/late-body.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const toClient = ({ url, key }: Pick<TestServer, 'url' | 'key'>) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });

const upload = (client: OpenAI, text: string, name = 'lines.jsonl') =>
  toFile(Buffer.from(text), name).then((file) => client.files.create({ file, purpose: 'batch' }));

const isError = (status: number, code: string) => (error: unknown) => {
  assert.ok(error instanceof OpenAI.APIError);
  assert.equal(error.status, status);
  assert.equal(error.code, code);
  return true;
};

test('an account can’t take the uploads of all others', async () => {
  const server = await startTestServer();
  const part = (name: string, text: string) =>
    `--b\r\ncontent-disposition: form-data; name=${name}\r\n\r\n${text}\r\n`;
  const form = `${part('"purpose"', 'batch')}${part('"file"; filename="a"', '{}')}--b--\r\n`;
  const headers = {
    authorization: `Bearer ${server.key}`,
    'content-type': 'multipart/form-data; boundary=b',
  };
  const begin = () => beginPost(`${server.url}/v1/files`, headers, form);
  const begun = await Promise.all(Array.from({ length: 16 }, begin));
  assert.equal(await (await begin())(), 503);
  for (const finish of begun) assert.equal(await finish(), 200);
  assert.equal(await (await begin())(), 200);
});

for (const database of databases) {
  describe(`files on ${database}`, () => {
    test('a file of many blocks is listed, downloaded as it was, and deleted', async () => {
      const server = await startTestServer({ database });
      const client = toClient(server);
      const text = `${'x'.repeat(99)}\n`.repeat(7_000);
      const file = await upload(client, text);
      assert.match(file.id, /^file-[0-9a-f]{32}$/);
      assert.equal(file.bytes, text.length);
      assert.equal(file.purpose, 'batch');
      assert.equal(file.filename, 'lines.jsonl');
      assert.deepEqual(await client.files.retrieve(file.id), file);
      assert.equal(await (await client.files.content(file.id)).text(), text);
      assert.deepEqual((await client.files.list()).data, [file]);
      assert.deepEqual(await client.files.delete(file.id), {
        id: file.id,
        object: 'file',
        deleted: true,
      });
      await assert.rejects(client.files.retrieve(file.id), isError(404, 'file_not_found'));
      await assert.rejects(client.files.content(file.id), isError(404, 'file_not_found'));
      await assert.rejects(client.files.delete(file.id), isError(404, 'file_not_found'));
    });

    test('pages of files follow each other without gaps in both orders', async () => {
      const client = toClient(await startTestServer({ database }));
      const ids: string[] = [];
      for (let index = 0; index < 5; index++) ids.push((await upload(client, `${index}`)).id);
      const collect = async (order: 'asc' | 'desc') => {
        const found: string[] = [];
        for await (const { id } of client.files.list({ limit: 2, order })) found.push(id);
        return found;
      };
      const ascending = await collect('asc');
      assert.deepEqual([...ascending].sort(), [...ids].sort());
      assert.deepEqual(await collect('desc'), ascending.toReversed());
      await assert.rejects(
        client.files.list({ after: 'file-unknown' }).then(),
        isError(400, 'invalid_value'),
      );
    });

    test('a file over the limit of files or of the account is refused and leaves no room taken', async () => {
      const config = { inference: { batches: { max_file_mib: 1, account_files_mib: 2 } } };
      const client = toClient(await startTestServer({ database, config }));
      const mib = 'x'.repeat(2 ** 20);
      await assert.rejects(upload(client, `${mib}y`), isError(413, 'file_too_large'));
      const first = await upload(client, mib);
      await upload(client, mib);
      await assert.rejects(upload(client, 'z'), isError(413, 'storage_limit_exceeded'));
      await client.files.delete(first.id);
      await upload(client, 'z');
    });
  });
}

test('forms that lack a file or a purpose, or are none, are refused with words', async () => {
  const server = await startTestServer();
  const send = async (entries: [string, string | Blob][]) => {
    const form = new FormData();
    for (const [name, value] of entries) form.append(name, value);
    const response = await server.fetch('/v1/files', { method: 'POST', body: form });
    const { error } = (await response.json()) as { error: { code: string; param: string } };
    return [response.status, error.code, error.param];
  };
  const file = new Blob(['{}']);
  assert.deepEqual(await send([['file', file]]), [400, 'missing_required_parameter', 'purpose']);
  assert.deepEqual(await send([['purpose', 'batch']]), [400, 'missing_required_parameter', 'file']);
  assert.deepEqual(
    await send([
      ['file', file],
      ['purpose', 'vision'],
    ]),
    [400, 'invalid_value', 'purpose'],
  );
  assert.deepEqual(
    await send([
      ['file', new Blob([])],
      ['purpose', 'batch'],
    ]),
    [400, 'invalid_value', 'file'],
  );
  assert.deepEqual(
    await send([
      ['purpose', 'batch'],
      ['expires_after[anchor]', 'created_at'],
      ['expires_after[seconds]', '5'],
      ['file', file],
    ]),
    [400, 'invalid_value', 'expires_after.seconds'],
  );
  const json = await server.fetch('/v1/files', { json: { purpose: 'batch' } });
  assert.equal(json.status, 415);
  const cut = await server.fetch('/v1/files', {
    method: 'POST',
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
    body: '--x\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nhalf',
  });
  assert.equal(cut.status, 400);
  const list = (await (await server.fetch('/v1/files')).json()) as { data: unknown[] };
  assert.deepEqual(list.data, []);
});
