// Reads and writes the archive: a gzipped tar file whose first entry is the manifest, so that any tar can list
// it and a restore can refuse it before it unpacks anything.

import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { create, Parser, type ReadEntry, Unpack } from 'tar';
import { toReason } from '#lib/start-error.ts';
import { damaged, formatTooNew, notABackup, notReadable, notUnpacked } from './errors.ts';
import {
  type Manifest,
  manifestFile,
  manifestFormat,
  maxManifestBytes,
  parseManifest,
} from './manifest.ts';
import { countBytes, type Watcher } from './progress.ts';

/** Packs the manifest and the files it names. The file is synced to disk when this resolves. */
export async function packArchive(
  folder: string,
  { files }: Manifest,
  target: string,
  watcher: Watcher,
): Promise<void> {
  const count = countBytes(watcher, sum(files), 'writing the archive');
  const paths = [manifestFile, ...files.map(({ path }) => path)];
  await pipeline(
    Readable.from(create({ cwd: folder, portable: true }, paths)),
    async function* counted(chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        count(chunk.length);
        yield chunk;
      }
    },
    createGzip({ level: 1 }),
    createWriteStream(target, { flags: 'wx', mode: 0o600, flush: true }),
    { signal: watcher.signal },
  );
}

/** Reads no further than the manifest. */
export async function readManifest(file: string): Promise<Manifest> {
  const text = await readFirstEntry(file);
  let value: unknown;
  try {
    value = JSON.parse(text ?? '');
  } catch {
    throw notABackup(file);
  }
  const { format, millrace } = (value ?? {}) as { format?: unknown; millrace?: unknown };
  if (typeof format === 'number' && format > manifestFormat) throw formatTooNew(String(millrace));
  const manifest = parseManifest(value);
  if (manifest === undefined) throw notABackup(file);
  return manifest;
}

async function readFirstEntry(file: string): Promise<string | null> {
  let text = '';
  let state: 'searching' | 'found' | 'none' = 'searching';
  const parser = new Parser({
    strict: true,
    onReadEntry(entry) {
      // One chunk of the file can hold many entries.
      if (state !== 'searching') return entry.resume();
      if (entry.path !== manifestFile || entry.size > maxManifestBytes) state = 'none';
      entry.on('data', (chunk: Buffer) => {
        text += chunk;
      });
      entry.on('end', () => {
        if (state === 'searching') state = 'found';
      });
    },
  });
  parser.on('error', () => {
    if (state === 'searching') state = 'none';
  });
  const source = createReadStream(file);
  try {
    for await (const chunk of source) {
      parser.write(chunk as Buffer);
      if (state !== 'searching') break;
    }
  } catch (error) {
    throw notReadable(file, toReason(error));
  }
  // The parser holds a file of a few bytes back until its end.
  if (state === 'searching') parser.end();
  return (state as string) === 'found' ? text : null;
}

/** Unpacks what the manifest names and nothing else, at the sizes it states. */
export async function unpackArchive(
  file: string,
  folder: string,
  { files }: Manifest,
  watcher: Watcher,
): Promise<void> {
  const sizes = new Map<string, number>(files.map(({ path, bytes }) => [path, bytes]));
  const count = countBytes(watcher, (await stat(file)).size, 'unpacking');
  const unpack = new Unpack({
    cwd: folder,
    strict: true,
    preserveOwner: false,
    filter: (path, entry) =>
      (entry as ReadEntry).type === 'File' && sizes.get(path) === (entry as ReadEntry).size,
  });
  await new Promise<void>((resolve, reject) => {
    const source = createReadStream(file);
    const fail = (error: unknown) => {
      source.destroy();
      if (watcher.signal.aborted) reject(error);
      // What the file system refuses has a system call; what the archive gets wrong has none.
      else if ((error as NodeJS.ErrnoException).syscall !== undefined) {
        reject(notUnpacked(file, toReason(error)));
      } else reject(damaged(file, toReason(error)));
    };
    unpack.on('error', fail).on('close', resolve);
    source.on('error', fail).on('data', (chunk) => {
      try {
        count(chunk.length);
      } catch (error) {
        fail(error);
      }
    });
    source.pipe(unpack as unknown as NodeJS.WritableStream);
  });
}

const sum = (files: Manifest['files']) => files.reduce((total, { bytes }) => total + bytes, 0);
