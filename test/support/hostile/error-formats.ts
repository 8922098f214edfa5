// The error format of each inference API.

import assert from 'node:assert/strict';

/** Throws if an error is not in the format of the API that the path belongs to. Other paths are not checked. */
export function assertErrorFormat(path: string, answer: string): void {
  const shown = `${path}: ${answer.slice(0, 300)}`;
  const body = JSON.parse(answer) as Record<string, unknown>;
  if (/^\/api\/(?!v1(\/|$))/.test(path)) {
    assert.deepEqual(Object.keys(body), ['error'], shown);
    assert(typeof body.error === 'string' && body.error !== '', shown);
    return;
  }
  const error = body.error as Record<string, unknown>;
  if (/^\/v1\/messages(\/|$)/.test(path)) {
    assert.deepEqual(Object.keys(body).sort(), ['error', 'request_id', 'type'], shown);
    assert.equal(body.type, 'error', shown);
    assert.match(body.request_id as string, /^[0-9a-f]{32}$/, shown);
    assert.match(error.type as string, /_error$|^request_too_large$/, shown);
  } else if (/^\/(v1\/|rerank$|(de)?tokenize$)/.test(path)) {
    assert.deepEqual(Object.keys(body), ['error'], shown);
    assert.deepEqual(Object.keys(error).sort(), ['code', 'message', 'param', 'type'], shown);
    assert.equal(typeof error.type, 'string', shown);
  } else return;
  assert(typeof error.message === 'string' && error.message !== '', shown);
}
