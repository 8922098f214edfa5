// The form by which the file of a batch is uploaded. The file is streamed, whatever its size.

import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import type { LongBody } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import { toReason } from '#lib/start-error.ts';

/** The first line of a file is looked for in this many bytes. */
const maxLineBytes = 64 * 2 ** 20;
const boundary = 'millrace-batch-part-8c41f7d2';

export function openUpload(
  path: string,
  size: number,
  onProgress: (done: number) => void,
): LongBody {
  const name = basename(path).replace(/["\\\r\n]/g, '_');
  const part = (header: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; ${header}\r\n\r\n`;
  const before = `${part('name="purpose"')}batch\r\n${part(`name="file"; filename="${name}"`)}`;
  const after = `\r\n--${boundary}--\r\n`;
  async function* contents() {
    let done = 0;
    yield Buffer.from(before);
    for await (const chunk of read(path)) {
      done += chunk.length;
      onProgress(done);
      yield chunk;
    }
    yield Buffer.from(after);
  }
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    bytes: Buffer.byteLength(before) + size + after.length,
    content: Readable.from(contents(), { objectMode: false }),
  };
}

/** The URL of the first request, which all requests of a batch share. */
export async function readEndpoint(path: string): Promise<string> {
  for await (const line of createInterface({ input: Readable.from(read(path, maxLineBytes)) })) {
    if (line.trim() === '') continue;
    const { url } = parseLine(path, line);
    if (typeof url === 'string') return url;
    throw new CliError(`The first line of ${path} has no url, such as "/v1/chat/completions".`);
  }
  throw new CliError(`${path} has no requests.`);
}

function parseLine(path: string, line: string): { url?: unknown } {
  try {
    return Object(JSON.parse(line));
  } catch {
    throw new CliError(
      `The first line of ${path} is not JSON. Give a file with one request per line.`,
    );
  }
}

async function* read(path: string, maxBytes = Infinity): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(path, { highWaterMark: 256 * 1024, end: maxBytes });
  } catch (error) {
    throw new CliError(`Can't read ${path}: ${toReason(error)}.`);
  }
}
