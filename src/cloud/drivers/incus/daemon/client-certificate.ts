// The certificate that identifies this installation to endpoints: self-signed, created once and kept. Node can't
// create certificates, so the few required fields are encoded here (RFC 5280).

import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

export interface Identity {
  /** Both are PEM. */
  readonly certificate: string;
  readonly key: string;
}

const days = 24 * 60 * 60 * 1000;
const validityMs = 3650 * days;

export function createIdentity(commonName: string, now = Date.now()): Identity {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const algorithm = sequence(objectId('1.2.840.10045.4.3.3'));
  const name = sequence(set(sequence(objectId('2.5.4.3'), tagged(0x0c, Buffer.from(commonName)))));
  const extensions = sequence(
    // Key usage: digital signature. Extended: client authentication.
    sequence(objectId('2.5.29.15'), boolean(true), octets(tagged(0x03, Buffer.from([7, 0x80])))),
    sequence(objectId('2.5.29.37'), octets(sequence(objectId('1.3.6.1.5.5.7.3.2')))),
  );
  const body = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    algorithm,
    name,
    sequence(time(now - days), time(now + validityMs)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    tagged(0xa3, extensions),
  );
  const signature = Buffer.concat([Buffer.from([0]), sign('sha384', body, privateKey)]);
  const der = sequence(body, algorithm, tagged(0x03, signature));
  return {
    certificate: toPem(der),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

function toPem(der: Buffer): string {
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), content]);
  const size = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (...parts: Buffer[]) => tagged(0x30, Buffer.concat(parts));
const set = (...parts: Buffer[]) => tagged(0x31, Buffer.concat(parts));
const integer = (bytes: Buffer) => tagged(0x02, bytes);
const octets = (content: Buffer) => tagged(0x04, content);
const boolean = (value: boolean) => tagged(0x01, Buffer.from([value ? 0xff : 0]));

/** Encodes as `YYMMDDhhmmssZ`, with a four-digit year from 2050 on. */
function time(at: number): Buffer {
  const digits = new Date(at).toISOString().replaceAll(/[-:T]|\.\d+/g, '');
  const isLate = Number(digits.slice(0, 4)) >= 2050;
  return tagged(isLate ? 0x18 : 0x17, Buffer.from(isLate ? digits : digits.slice(2)));
}

function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second];
  for (const number of rest) {
    const groups = [number & 0x7f];
    for (let left = number >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
    bytes.push(...groups);
  }
  return tagged(0x06, Buffer.from(bytes));
}
