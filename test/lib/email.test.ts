// Email addresses are stored in one spelling and shown in the one that people write.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toAddress, toReadable } from '#lib/text/email.ts';

test('an international domain is stored in ASCII and shown in its own script', () => {
  const stored = toAddress('Owner@Bücher.example');
  assert.equal(stored, 'owner@xn--bcher-kva.example');
  assert.equal(toReadable(stored), 'owner@bücher.example');
});

test('a letter with an accent is stored alike in both of its spellings', () => {
  assert.equal(toAddress('Jo\u0308rg@example.com'), toAddress('j\u00f6rg@example.com'));
});

test('other addresses, labels and missing ones are shown as they are', () => {
  for (const text of ['owner@127.1', 'xn--label', 'xn--a@example.com', null]) {
    assert.equal(toReadable(text), text);
  }
});
