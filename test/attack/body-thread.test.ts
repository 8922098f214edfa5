// The thread that parses large bodies returns what was sent, and its death costs one body.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { memberTexts } from '#http/body/json.ts';
import { addPiece, toPieces } from '#inference/apis/bodies/body-pieces.ts';
import { BodyRefused, createBodyThread } from '#inference/apis/bodies/body-thread.ts';
import { systemClock } from '#lib/clock.ts';
import { Refusal } from '#lib/errors.ts';

const { signal: never } = new AbortController();
const bounds = { maxBytes: 8 * 2 ** 20, maxValues: 200_000 };
const messages = [{ role: 'user', content: 'Go' }];

function rebuild(body: Record<string, unknown>): {
  built: Record<string, unknown>;
  pieces: number;
} {
  const built = {};
  let pieces = 0;
  for (const piece of toPieces(body)) {
    addPiece(built, structuredClone(piece));
    pieces++;
  }
  return { built, pieces };
}

describe('a body in pieces', () => {
  test('is the same body on the other side', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (body) => {
        assert.deepEqual(rebuild({ ...body }).built, { ...body });
      }),
    );
  });

  test('is cut inside of whatever has many values', () => {
    const many = Array.from({ length: 9_000 }, (_, index) => ({ index }));
    const names = Object.fromEntries(many.map(({ index }) => [`name ${index}`, [index]]));
    const body = { many, names, nested: [{ deeper: [many, 1] }], last: 'x' };
    const { built, pieces } = rebuild(body);
    assert.deepEqual(built, body);
    assert.deepEqual(Object.keys(built), Object.keys(body));
    assert(pieces > 10, `${pieces} pieces`);
  });

  test('keeps a member that is called __proto__ a member', () => {
    const body = JSON.parse(`{"__proto__":{"a":1},"x":{"__proto__":[${'1,'.repeat(9_000)}1]}}`);
    const { built } = rebuild(body);
    assert.equal(JSON.stringify(built), JSON.stringify(body));
    assert.equal(Object.getPrototypeOf(built), Object.prototype);
  });
});

describe('the thread that parses bodies', () => {
  const toBytes = (body: unknown) => Buffer.from(JSON.stringify(body));

  test('hands back the body, with the JSON of its long members', async (t) => {
    const thread = createBodyThread(systemClock, bounds);
    t.after(() => thread.close());
    const body = { model: 'm', messages, zz: Array.from({ length: 20_000 }, (_, n) => ({ n })) };
    const parsed = await thread.parse(
      { caller: 'a', url: '/v1/chat/completions', bytes: toBytes(body) },
      never,
    );
    assert.deepEqual(
      { ...parsed, [memberTexts]: undefined },
      { ...body, [memberTexts]: undefined },
    );
    const texts = parsed[memberTexts];
    assert.equal(texts?.size, 1);
    assert.equal(String(Buffer.from(texts.get(parsed.zz) ?? '')), JSON.stringify(body.zz));
  });

  test('refuses what the schema refuses, and tells which model it asked for', async (t) => {
    const thread = createBodyThread(systemClock, bounds);
    t.after(() => thread.close());
    const bytes = toBytes({ model: 'm', messages: [] });
    await assert.rejects(
      thread.parse({ caller: 'a', url: '/v1/chat/completions', bytes }, never),
      (error) => {
        assert(error instanceof BodyRefused);
        const { status, body } = error.rendered;
        const { param } = (body as { error: { param: string } }).error;
        assert.deepEqual([status, param, error.model], [400, 'messages', 'm']);
        return true;
      },
    );
  });

  test('that dies fails the body it had, and serves the next', async (t) => {
    const thread = createBodyThread(
      systemClock,
      bounds,
      new URL('../support/attack/mortal-body-worker.ts', import.meta.url),
    );
    t.after(() => thread.close());
    const bytes = toBytes({ model: 'die', messages });
    const dying = thread.parse({ caller: 'a', url: '/v1/chat/completions', bytes }, never);
    const next = thread.parse(
      { caller: 'a', url: '/v1/chat/completions', bytes: toBytes({ model: 'm', messages }) },
      never,
    );
    await assert.rejects(dying, (error) => error instanceof Refusal && error.code === 'overloaded');
    assert.deepEqual((await next).messages, messages);
  });

  test('refuses bodies whose clients have left, and takes a bounded number per caller', async (t) => {
    const thread = createBodyThread(systemClock, bounds);
    t.after(() => thread.close());
    const left = new AbortController();
    const ask = (caller: string) =>
      thread.parse(
        { caller, url: '/v1/chat/completions', bytes: toBytes({ model: 'm', messages }) },
        left.signal,
      );
    const bodies = Array.from({ length: 128 }, () => ask('a'));
    await assert.rejects(ask('a'), (error) => (error as Refusal).code === 'rate_limited');
    left.abort(new Error('gone'));
    for (const one of bodies) await assert.rejects(one, /gone/);
  });
});
