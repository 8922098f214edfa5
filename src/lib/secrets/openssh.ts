// Parses SSH public keys in any common format (OpenSSH line, PEM, RFC 4716) into one OpenSSH line and its
// fingerprint. The blob is read field by field, so that a key we store is one that sshd accepts.

import { createPublicKey, hash, type webcrypto } from 'node:crypto';

export interface PublicKey {
  /** `<type> <base64> [comment]`. */
  line: string;
  /** `SHA256:…`, as printed by ssh-keygen. */
  fingerprint: string;
}

export class InvalidKey extends Error {}

const pemPublic = /^-----BEGIN (RSA )?PUBLIC KEY-----/;
const rfc4716 = /^---- BEGIN SSH2 PUBLIC KEY ----/;
const anyPrivate =
  /PRIVATE KEY( BLOCK)?-----|---- BEGIN SSH2 ENCRYPTED PRIVATE|PuTTY-User-Key-File/;

/** Throws InvalidKey. Its message never quotes the input, which may be a secret. */
export function parsePublicKey(text: string): PublicKey {
  const trimmed = text.trim();
  if (anyPrivate.test(trimmed)) {
    throw new InvalidKey(
      'This is a private key. Send the public key instead, and treat this private key as exposed.',
    );
  }
  if (pemPublic.test(trimmed)) return toPublicKey(fromPem(trimmed), '');
  if (rfc4716.test(trimmed)) return fromRfc4716(trimmed);
  return fromLine(trimmed);
}

function fromLine(line: string): PublicKey {
  const [type = '', base64 = '', ...comment] = line.split(/[ \t]+/);
  if (/[\r\n]/.test(line)) throw new InvalidKey('Send one key, on one line.');
  const key = toPublicKey(fromBase64(base64), comment.join(' '));
  if (!key.line.startsWith(`${type} `)) {
    throw new InvalidKey('The key type in the text differs from the type of the key.');
  }
  return key;
}

function fromRfc4716(text: string): PublicKey {
  const lines = text.replaceAll(/\\\r?\n/g, '').split(/\r?\n/);
  const end = lines.indexOf('---- END SSH2 PUBLIC KEY ----');
  if (end < 0) throw new InvalidKey('The SSH2 key has no end line.');
  const inner = lines.slice(1, end);
  const header = inner.find((line) => /^comment:/i.test(line)) ?? '';
  const comment = header.replace(/^comment:\s*/i, '').replaceAll('"', '');
  return toPublicKey(fromBase64(inner.filter((line) => !line.includes(':')).join('')), comment);
}

const curves: Record<string, string> = {
  'P-256': 'nistp256',
  'P-384': 'nistp384',
  'P-521': 'nistp521',
};

function fromPem(pem: string): Buffer {
  let jwk: webcrypto.JsonWebKey;
  try {
    jwk = createPublicKey(pem).export({ format: 'jwk' });
  } catch {
    throw new InvalidKey('The PEM text does not contain a readable public key.');
  }
  const number = (value: string | undefined) => toMpint(Buffer.from(value ?? '', 'base64url'));
  const bytes = (value: string | undefined) => Buffer.from(value ?? '', 'base64url');
  if (jwk.kty === 'RSA') return pack(text('ssh-rsa'), number(jwk.e), number(jwk.n));
  if (jwk.crv === 'Ed25519') return pack(text('ssh-ed25519'), bytes(jwk.x));
  const curve = curves[jwk.crv ?? ''];
  if (curve === undefined) throw new InvalidKey('Keys of this type cannot be used with SSH.');
  const point = Buffer.concat([Buffer.from([4]), bytes(jwk.x), bytes(jwk.y)]);
  return pack(text(`ecdsa-sha2-${curve}`), text(curve), point);
}

function fromBase64(base64: string): Buffer {
  if (!/^[A-Za-z0-9+/]{16,}={0,2}$/.test(base64)) {
    throw new InvalidKey(
      'This is not a public key. It must look like "ssh-ed25519 AAAA... name" or be PEM text.',
    );
  }
  return Buffer.from(base64, 'base64');
}

const pointBytes: Record<string, number> = { nistp256: 65, nistp384: 97, nistp521: 133 };

/** Checks the fields after the type's name, for each type. */
const shapes: Record<string, (fields: Buffer[]) => boolean> = {
  'ssh-ed25519': ([key, ...rest]) => key?.length === 32 && rest.length === 0,
  'ssh-rsa': ([e, n, ...rest]) =>
    e !== undefined &&
    e.length > 0 &&
    e.length <= 8 &&
    bits(n) >= 1024 &&
    bits(n) <= 16_384 &&
    rest.length === 0,
  'ecdsa-sha2-nistp256': (fields) => isPoint(fields, 'nistp256', 2),
  'ecdsa-sha2-nistp384': (fields) => isPoint(fields, 'nistp384', 2),
  'ecdsa-sha2-nistp521': (fields) => isPoint(fields, 'nistp521', 2),
  'sk-ssh-ed25519@openssh.com': ([key, app, ...rest]) =>
    key?.length === 32 && app !== undefined && rest.length === 0,
  'sk-ecdsa-sha2-nistp256@openssh.com': (fields) => isPoint(fields, 'nistp256', 3),
};

function isPoint(fields: Buffer[], curve: string, count: number): boolean {
  const [name, point] = fields;
  return (
    fields.length === count && name?.toString() === curve && point?.length === pointBytes[curve]
  );
}

function toPublicKey(blob: Buffer, comment: string): PublicKey {
  const [name, ...fields] = unpack(blob);
  const type = name?.toString('latin1') ?? '';
  const shape = Object.hasOwn(shapes, type) ? shapes[type] : undefined;
  if (shape === undefined) {
    throw new InvalidKey('Keys of this type are not supported. Use ed25519, ecdsa or rsa.');
  }
  if (!shape(fields)) throw new InvalidKey(`The ${type} key is damaged or too short.`);
  const label = comment
    .replaceAll(/\p{Cc}/gu, ' ')
    .trim()
    .slice(0, 256);
  const line = `${type} ${blob.toString('base64')}${label === '' ? '' : ` ${label}`}`;
  const digest = hash('sha256', blob, 'base64').replace(/=+$/, '');
  return { line, fingerprint: `SHA256:${digest}` };
}

function unpack(blob: Buffer): Buffer[] {
  const fields: Buffer[] = [];
  let offset = 0;
  while (offset < blob.length && fields.length < 8) {
    if (offset + 4 > blob.length) throw new InvalidKey('The key is truncated.');
    const end = offset + 4 + blob.readUInt32BE(offset);
    if (end > blob.length) throw new InvalidKey('The key is truncated.');
    fields.push(blob.subarray(offset + 4, end));
    offset = end;
  }
  return fields;
}

const text = (value: string) => Buffer.from(value, 'latin1');

function pack(...fields: Buffer[]): Buffer {
  return Buffer.concat(
    fields.flatMap((field) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(field.length);
      return [length, field];
    }),
  );
}

/** Prepends a zero byte if the first bit is set, which would otherwise read as a sign. */
function toMpint(number: Buffer): Buffer {
  return (number[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.from([0]), number]) : number;
}

function bits(number: Buffer | undefined): number {
  if (number === undefined) return 0;
  const start = number.findIndex((byte) => byte !== 0);
  if (start < 0) return 0;
  return (number.length - start) * 8 - Math.clz32(number[start] as number) + 24;
}
