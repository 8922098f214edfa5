// A self-signed certificate for ourselves, as a client that others shall recognise again. Node makes keys
// and signatures but no certificates, so the little DER that one needs is written here.

import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

export interface CertificatePair {
  /** PEM, both. */
  readonly certificate: string;
  readonly key: string;
}

/** ECDSA P-384 with SHA-384, valid from a day ago, as clocks differ, for ten years. */
export function makeCertificate(commonName: string, now: number): CertificatePair {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const name = sequence(set(sequence(objectId(commonNameId), text(commonName))));
  const algorithm = sequence(objectId(ecdsaWithSha384));
  const body = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(randomBytes(16)),
    algorithm,
    name,
    sequence(time(now - dayMs), time(now + 3650 * dayMs)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, sequence(clientOnly)),
  );
  const signature = sign('sha384', body, privateKey);
  const certificate = sequence(body, algorithm, bits(signature));
  return {
    certificate: toPem('CERTIFICATE', certificate),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

const dayMs = 86_400_000;
const commonNameId = [0x55, 0x04, 0x03];
const ecdsaWithSha384 = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03];
const extendedKeyUsage = [0x55, 0x1d, 0x25];
const clientAuthentication = [0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x02];

function tagged(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  const size = Buffer.from(length.toString(16).padStart(length < 0x100 ? 2 : 4, '0'), 'hex');
  return Buffer.concat([Buffer.from([tag, 0x80 | size.length]), size, content]);
}

const sequence = (...parts: Buffer[]) => tagged(0x30, ...parts);
const set = (...parts: Buffer[]) => tagged(0x31, ...parts);
const objectId = (bytes: readonly number[]) => tagged(0x06, Buffer.from(bytes));
const text = (value: string) => tagged(0x0c, Buffer.from(value));
const bits = (bytes: Buffer) => tagged(0x03, Buffer.from([0]), bytes);
/** Without the highest bit, which would make it negative, nor a zero in front, which DER has no place for. */
const integer = (bytes: Buffer) => {
  const [first = 0, ...rest] = bytes;
  return tagged(0x02, Buffer.from([(first & 0x7f) | (rest.length > 0 ? 0x40 : 0), ...rest]));
};
/** Years from 2050 on are spelled in full. */
function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/\.\d+|[-:T]/g, '');
  return digits < '2050'
    ? tagged(0x17, Buffer.from(digits.slice(2)))
    : tagged(0x18, Buffer.from(digits));
}

const clientOnly = sequence(
  objectId(extendedKeyUsage),
  tagged(0x04, sequence(objectId(clientAuthentication))),
);

function toPem(label: string, der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}
