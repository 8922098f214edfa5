// How secrets are hashed at rest, compared and masked. Tokens are long and random, so SHA-256 is enough;
// passwords are not, so they use argon2id.

import { argon2, hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import { randomAlphanumerics } from '#lib/ids.ts';

export const hashToken = (token: string): string => hash('sha256', token, 'hex');

/** A token for links and sessions: 43 characters, 256 bits. */
export const newToken = (): string => randomAlphanumerics(43);

export function equalHashes(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one, 'hex'), Buffer.from(other, 'hex')];
  return a.length === b.length && timingSafeEqual(a, b);
}

/** Shows enough of a secret to recognise it, and too little to use it. */
export function maskSecret(secret: string): string {
  if (secret.length < 24) return '***';
  return `${secret.slice(0, 8)}***${secret.slice(-4)}`;
}

/** Parameters of argon2id. They are stored with each hash. */
export interface PasswordCost {
  /** In KiB. */
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
}

// OWASP's second profile: 19 MiB, two passes, one lane.
const standardCost: PasswordCost = { memory: 19_456, passes: 2, parallelism: 1 };
const derive = promisify(argon2);

export async function hashPassword(password: string, cost = standardCost): Promise<string> {
  const nonce = randomBytes(16);
  const tag = await deriveTag(password, nonce, cost);
  return `argon2id$${cost.memory}$${cost.passes}$${cost.parallelism}$${nonce.toString('hex')}$${tag.toString('hex')}`;
}

export async function verifyPassword(password: string, stored: string): Promise<boolean> {
  const [, memory, passes, parallelism, nonce, tag] = stored.split('$');
  const wanted = Buffer.from(tag ?? '', 'hex');
  const got = await deriveTag(password, Buffer.from(nonce ?? '', 'hex'), {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
  });
  return wanted.length === got.length && timingSafeEqual(wanted, got);
}

function deriveTag(password: string, nonce: Buffer, parameters: PasswordCost): Promise<Buffer> {
  return derive('argon2id', { ...parameters, message: password, nonce, tagLength: 32 });
}
