// Batches for tests: input files, and waiting until a batch has ended.

import OpenAI, { toFile } from 'openai';
import { gatewayModel } from './gateway.ts';
import { until } from './until.ts';

export const toClient = ({ url, key }: { url: string; key: string }) =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });

const url = '/v1/chat/completions' as const;

export const toLine = (id: string, change: object = {}, body: object = {}) => ({
  custom_id: id,
  method: 'POST',
  url,
  body: { model: gatewayModel, messages: [{ role: 'user', content: id }], ...body },
  ...change,
});

export const toLines = (count: number) =>
  Array.from({ length: count }, (_, index) => toLine(`line-${index}`));

export const toText = (lines: readonly object[]) =>
  lines.map((line) => `${JSON.stringify(line)}\n`).join('');

export async function createBatch(client: OpenAI, text: string, options: object = {}) {
  const file = await toFile(Buffer.from(text), 'lines.jsonl');
  const { id } = await client.files.create({ file, purpose: 'batch' });
  return client.batches.create({
    input_file_id: id,
    endpoint: url,
    completion_window: '24h',
    ...options,
  });
}

const ends = ['completed', 'failed', 'expired', 'cancelled'];

export const untilEnded = (client: OpenAI, id: string, timeoutMs = 120_000) =>
  until(
    'the batch has ended',
    async () => {
      const batch = await client.batches.retrieve(id);
      return ends.includes(batch.status) ? batch : null;
    },
    timeoutMs,
  );

export interface ResultLine {
  id: string;
  custom_id: string;
  response: {
    status_code: number;
    request_id: string;
    body: OpenAI.ChatCompletion & { error?: { code: string } };
  } | null;
  error: { code: string } | null;
}

export async function readResults(client: OpenAI, fileId: string | null | undefined) {
  if (fileId == null) return [];
  const text = await (await client.files.content(fileId)).text();
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as ResultLine);
}
