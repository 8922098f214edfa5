// Reading a request's body: the ways in which its client can leave.

import assert from 'node:assert/strict';
import { PassThrough, type Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { type ReadRules, readBody } from '#http/body/bodies.ts';

const rules: ReadRules = { maxBytes: 1_000, maxValues: 100, declaredBytes: 12, admit: null };

const read = (payload: Readable) =>
  new Promise<unknown>((resolve) =>
    readBody(payload, rules, (error, received) => resolve(error ?? received)),
  );

describe('reading a body', () => {
  test('a client that left before the body is read leaves an error, not a wait', async () => {
    const payload = new PassThrough();
    payload.write('{"a":');
    payload.destroy();
    assert.match(String(await read(payload)), /ended before it was complete/);
  });

  test('a client that leaves in the middle of its body leaves an error', async () => {
    const payload = new PassThrough();
    payload.write('{"a":');
    const reading = read(payload);
    payload.destroy(new Error('aborted'));
    assert.match(String(await reading), /aborted/);
  });

  test('a whole body is handed on with its number of values', async () => {
    const payload = new PassThrough();
    payload.end('{"a":[1, 2]}');
    const received = (await read(payload)) as { bytes: Buffer; values: number };
    assert.equal(received.bytes.toString(), '{"a":[1, 2]}');
    assert.ok(received.values >= 4);
  });
});
