// The request body of an image upload: one file as it is, or two files as the multipart form that LXD and
// Incus accept. Files are streamed, whatever their size.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import type { LongBody } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import { toReason } from '#lib/start-error.ts';

const boundary = 'millrace-image-part-5d1f0c27';

/** The SHA-256 by which LXD and Incus identify an image: of one file, or of both concatenated. */
export async function fingerprintOf(files: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const file of files) for await (const chunk of read(file)) hash.update(chunk);
  return hash.digest('hex');
}

type Piece = { readonly file: string } | { readonly text: string };

export async function openUpload(
  files: readonly string[],
  onProgress: (done: number) => void,
): Promise<LongBody> {
  const [first = '', rootfs] = files;
  const pieces: Piece[] =
    rootfs === undefined
      ? [{ file: first }]
      : [
          { text: header('metadata', first) },
          { file: first },
          { text: `\r\n${header((await isDisk(rootfs)) ? 'rootfs.img' : 'rootfs', rootfs)}` },
          { file: rootfs },
          { text: `\r\n--${boundary}--\r\n` },
        ];
  const sizes = await Promise.all(
    pieces.map(async (piece) =>
      'text' in piece ? Buffer.byteLength(piece.text) : (await stat(piece.file)).size,
    ),
  );
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  async function* contents() {
    let done = 0;
    for (const piece of pieces) {
      for await (const chunk of 'text' in piece ? [Buffer.from(piece.text)] : read(piece.file)) {
        done += chunk.length;
        onProgress(done);
        yield chunk;
      }
    }
  }
  return {
    type:
      rootfs === undefined
        ? 'application/octet-stream'
        : `multipart/form-data; boundary=${boundary}`,
    bytes,
    content: Readable.from(contents(), { objectMode: false }),
  };
}

const header = (name: string, file: string) =>
  `--${boundary}\r\nContent-Disposition: form-data; name="${name}"; filename="${basename(file).replace(/["\\\r\n]/g, '_')}"\r\nContent-Type: application/octet-stream\r\n\r\n`;

/** True for the qcow2 disk of a virtual machine; containers have a squashfs or a tarball. */
async function isDisk(file: string): Promise<boolean> {
  const handle = await open(file);
  try {
    const { buffer } = await handle.read(Buffer.alloc(4), 0, 4, 0);
    return buffer.toString('latin1') === 'QFI\xfb';
  } finally {
    await handle.close();
  }
}

async function* read(file: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(file, { highWaterMark: 256 * 1024 });
  } catch (error) {
    throw new CliError(`Can't read ${file}: ${toReason(error)}.`);
  }
}
