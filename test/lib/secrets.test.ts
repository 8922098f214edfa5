// What a password costs to guess.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashPassword, verifyPassword } from '#lib/secrets/secrets.ts';

test('a password is hashed by argon2id at OWASP’s second profile unless another cost is given', async () => {
  const stored = await hashPassword('correct horse battery');
  assert.match(stored, /^argon2id\$19456\$2\$1\$[0-9a-f]{32}\$[0-9a-f]{64}$/);
});

test('a hash is verified at the cost that it was created with', async () => {
  const cost = { memory: 8, passes: 1, parallelism: 1 };
  const stored = await hashPassword('correct horse battery', cost);
  assert.match(stored, /^argon2id\$8\$1\$1\$/);
  assert.equal(await verifyPassword('correct horse battery', stored), true);
  assert.equal(await verifyPassword('wrong horse battery', stored), false);
});
