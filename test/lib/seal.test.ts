// Sealed secrets: what opens them, and where the key lives.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createSeal, readSealKey } from '#lib/secrets/seal.ts';

const folders: string[] = [];
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-seal-'));
  folders.push(folder);
  return folder;
}

describe('a sealed secret', () => {
  it('opens with its key in its place, and neither elsewhere nor changed', () => {
    const seal = createSeal(() => randomBytes(32));
    const sealed = seal.close('sk-ümlaut', 'row 1');
    assert.equal(seal.open(sealed, 'row 1'), 'sk-ümlaut');
    assert.notEqual(seal.close('sk-ümlaut', 'row 1'), sealed);
    assert(!Buffer.from(sealed, 'base64').includes('sk-'));
    assert.throws(() => seal.open(sealed, 'row 2'));
    assert.throws(() => createSeal(() => randomBytes(32)).open(sealed, 'row 1'));
    const bytes = Buffer.from(sealed, 'base64');
    bytes.writeUInt8(bytes.readUInt8(13) ^ 1, 13);
    assert.throws(() => seal.open(bytes.toString('base64'), 'row 1'));
    for (const short of ['', 'AAAA']) assert.throws(() => seal.open(short, 'row 1'));
  });

  it('the key is created at first use, readable only by its owner, and stays', () => {
    const folder = makeFolder();
    const seal = createSeal(() => readSealKey(null, folder));
    assert.deepEqual(readdirSync(folder), []);
    const sealed = seal.close('x', 'p');
    assert.deepEqual(readdirSync(folder), ['secret.key']);
    assert.equal(statSync(join(folder, 'secret.key')).mode & 0o777, 0o600);
    assert.equal(createSeal(() => readSealKey(null, folder)).open(sealed, 'p'), 'x');
  });

  it('a configured key needs no file, and a broken file is not overwritten', () => {
    const folder = makeFolder();
    const key = randomBytes(32);
    assert.deepEqual(readSealKey(key.toString('base64'), folder), key);
    assert.deepEqual(readdirSync(folder), []);
    writeFileSync(join(folder, 'secret.key'), 'short');
    assert.throws(() => readSealKey(null, folder), /must hold a base64 key of 32 bytes/);
  });
});
