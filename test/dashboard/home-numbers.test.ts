// What the home page and the page of a request compute themselves: projections, speeds and shares.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { UsageRequest } from '#accounts/usage/schema.ts';
import { toHourlyPrice, toPercent, toSize, toTokenPrice } from '#lib/text/format.ts';
import { toProjection } from '../../web/src/home/projection.ts';
import { toSpeed } from '../../web/src/usage/request-speed.ts';
import { toLastWeek } from '../../web/src/usage/time-range.ts';

describe('computed on home', () => {
  test('a projection adds the rest of the UTC month at the rate of the last 7 days', () => {
    const noon = Date.parse('2026-11-21T12:00:00Z');
    const since = toLastWeek(noon).from;
    assert.equal(since, Date.parse('2026-11-15T00:00:00Z'));
    // 6.5 days have passed since then, and 9.5 remain.
    assert.equal(toProjection(10, { cost: 13, since }, noon), 10 + 2 * 9.5);
    assert.equal(toProjection(10, { cost: 0, since }, noon), 10);
  });

  test('on the first of a month, a projection uses days of the month before', () => {
    const midnight = Date.parse('2026-12-01T00:00:00Z');
    const since = toLastWeek(midnight).from;
    assert.equal(toProjection(0, { cost: 12, since }, midnight), 2 * 31);
  });

  test('a response that is too short has no speed', () => {
    const request = (completion_tokens: number, first_token_ms: number, duration_ms: number) =>
      toSpeed({ completion_tokens, first_token_ms, duration_ms } as UsageRequest);
    assert.equal(request(101, 500, 2500), '50.0');
    assert.equal(request(3, 9, 10), null);
    assert.equal(request(100, 9, 10), null);
  });

  test('shares, prices and sizes have one form', () => {
    assert.equal(toPercent(1, 3), '33.3%');
    assert.equal(toPercent(1, 4000), '0.03%');
    assert.equal(toPercent(1, 400_000_000), '<0.01%');
    assert.equal(toPercent(0, 0), '0%');
    assert.equal(toHourlyPrice(129), '$1.29/hour');
    assert.equal(toTokenPrice(0.025), '$0.025/M tokens');
    assert.equal(toSize(200_000), '200.0 kB');
  });
});
