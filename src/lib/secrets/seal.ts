// Encrypts secrets that must be read again, such as the keys of upstreams, with AES-256-GCM. A copy of the
// database alone reveals none of them, and a sealed secret can't be moved to another row.

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newId } from '#lib/ids.ts';

export interface Seal {
  /** `place` names what the secret belongs to. It can only be opened with the same `place`. */
  close(text: string, place: string): string;
  /** Throws if the text was sealed with another key or for another place. */
  open(sealed: string, place: string): string;
}

const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

/** The key is read or created at first use, since most servers never seal a secret. */
export function createSeal(readKey: () => Buffer): Seal {
  let known: Buffer | undefined;
  const key = () => {
    known ??= readKey();
    return known;
  };
  return {
    close(text, place) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', key(), nonce).setAAD(Buffer.from(place));
      const parts = [nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()];
      return Buffer.concat(parts).toString('base64');
    },
    open(sealed, place) {
      const bytes = Buffer.from(sealed, 'base64');
      const end = bytes.length - tagBytes;
      const decipher = createDecipheriv('aes-256-gcm', key(), bytes.subarray(0, nonceBytes))
        .setAAD(Buffer.from(place))
        .setAuthTag(bytes.subarray(end));
      const text = decipher.update(bytes.subarray(nonceBytes, end));
      return Buffer.concat([text, decipher.final()]).toString('utf8');
    },
  };
}

/** Returns the configured key, or else the one in the data directory, which is created if missing. */
export function readSealKey(configured: string | null, folder: string): Buffer {
  if (configured !== null) return Buffer.from(configured, 'base64');
  const file = join(folder, 'secret.key');
  try {
    return parseKey(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  // Written aside and linked: never half written, and never over a key that another process just created.
  const draft = join(folder, `secret.key.${newId()}`);
  writeFileSync(draft, `${randomBytes(keyBytes).toString('base64')}\n`, {
    mode: 0o600,
    flag: 'wx',
  });
  try {
    linkSync(draft, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft);
  }
  return parseKey(file);
}

function parseKey(file: string): Buffer {
  const key = Buffer.from(readFileSync(file, 'utf8').trim(), 'base64');
  if (key.length !== keyBytes)
    throw new Error(`${file} must hold a base64 key of ${keyBytes} bytes.`);
  return key;
}
