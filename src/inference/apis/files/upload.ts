// Reads the form of an upload as it arrives. The file is stored a block at a time, and the form's
// fields may come before or after it.

import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyHeaders } from '@fastify/busboy';
import type { FileRow } from '#db/tables/batch-rows.ts';
import { badForm, emptyFile, noFile, secondFile, wrongExpiry, wrongPurpose } from './errors.ts';
import { blockBytes, type Files } from './files.ts';

interface Form {
  readonly filename: string;
  readonly fields: ReadonlyMap<string, string>;
}

const limits = { fieldNameSize: 100, fieldSize: 1_000, fields: 20, parts: 22, headerPairs: 20 };
const maxNameLength = 255;

/**
 * Stores the file of a form. `recheck` is called before the file becomes visible: the form may take
 * minutes to arrive, and the caller may have lost the right meanwhile. After a failure the rest of
 * the request is left unread.
 */
export async function receiveUpload(
  files: Files,
  accountId: string,
  raw: IncomingMessage,
  recheck: () => Promise<void>,
): Promise<FileRow> {
  const id = await files.begin(accountId);
  try {
    const store = (content: Readable) => storeContent(files, accountId, id, content);
    const { filename, fields } = await readForm(raw, store);
    if (fields.get('purpose') !== 'batch') throw wrongPurpose(fields.get('purpose'));
    await recheck();
    return await files.finish(accountId, id, { filename, keepMs: toKeepMs(fields) });
  } catch (error) {
    await files.abandon(id);
    throw error;
  }
}

function readForm(
  raw: IncomingMessage,
  store: (content: Readable) => Promise<void>,
): Promise<Form> {
  const { promise, resolve, reject } = Promise.withResolvers<Form>();
  const fields = new Map<string, string>();
  let file: { content: Readable; stored: Promise<string> } | null = null;
  const form = openForm(raw);
  const fail = (error: Error) => {
    raw.unpipe(form);
    raw.pause();
    // Ends the loop that stores the content.
    file?.content.destroy(error);
    reject(error);
  };
  form.on('file', (name, content, filename) => {
    // A content that is destroyed while nothing reads it must not end the process.
    content.on('error', () => {});
    if (name !== 'file') return fail(noFile());
    if (file !== null) return fail(secondFile());
    const stored = store(content).then(() => toStorableName(filename));
    file = { content, stored };
    stored.catch(fail);
  });
  form.on('field', (name, value) => fields.set(name, value));
  for (const event of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const) {
    form.once(event, () => fail(badForm('it has too many parts')));
  }
  form.once('error', (error: Error) => fail(badForm(error.message)));
  form.once('finish', () => {
    if (file === null) fail(noFile());
    else file.stored.then((filename) => resolve({ filename, fields }), fail);
  });
  raw.once('close', () => {
    if (!raw.complete) fail(badForm('it ended before it was complete'));
  });
  raw.pipe(form);
  return promise;
}

function openForm({ headers }: IncomingMessage) {
  try {
    return new Busboy({ headers: headers as BusboyHeaders, limits });
  } catch (error) {
    throw badForm((error as Error).message);
  }
}

async function storeContent(
  files: Files,
  accountId: string,
  id: string,
  content: Readable,
): Promise<void> {
  let block = Buffer.allocUnsafe(blockBytes);
  let length = 0;
  let isEmpty = true;
  for await (const chunk of content as AsyncIterable<Buffer>) {
    isEmpty = false;
    for (let from = 0; from < chunk.length; ) {
      const copied = chunk.copy(block, length, from);
      from += copied;
      length += copied;
      if (length < blockBytes) continue;
      await files.append(accountId, id, block);
      block = Buffer.allocUnsafe(blockBytes);
      length = 0;
    }
  }
  if (isEmpty) throw emptyFile();
  if (length > 0) await files.append(accountId, id, block.subarray(0, length));
}

/** Undefined fields leave the time to the server's setting. */
function toKeepMs(fields: ReadonlyMap<string, string>): number | null {
  const anchor = fields.get('expires_after[anchor]');
  const seconds = fields.get('expires_after[seconds]');
  if (anchor === undefined && seconds === undefined) return null;
  if (anchor !== 'created_at') throw wrongExpiry('expires_after.anchor');
  const isInRange = /^\d{4,7}$/.test(seconds ?? '') && Number(seconds) >= 3_600;
  if (!isInRange || Number(seconds) > 2_592_000) throw wrongExpiry('expires_after.seconds');
  return Number(seconds) * 1000;
}

/** The name may be any text, and PostgreSQL stores neither NUL nor lone surrogates. */
const toStorableName = (name: string | undefined) =>
  (name ?? 'file').replaceAll('\0', '').slice(0, maxNameLength).toWellFormed();
