// What the usage page computes itself: time ranges, machine hours, chart groups, and numbers as text.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { toDuration, toHours, toMoney } from '#lib/text/format.ts';
import { toCsv } from '../../web/src/format/csv.ts';
import { findTagError, toTag } from '../../web/src/machines/tags.ts';
import { toChartData } from '../../web/src/usage/chart-data.ts';
import { toRange, toStarts } from '../../web/src/usage/time-range.ts';
import { toMachinePoints } from '../../web/src/usage/usage-data.ts';
import {
  toGroupTotals,
  toTotal,
  type UsagePoint,
  zeroTotals,
} from '../../web/src/usage/usage-totals.ts';

const now = Date.parse('2026-03-10T15:20:00Z');
const choice = { range: null, step: null, from: null, to: null };
const iso = (at: number) => new Date(at).toISOString();

describe('computed usage', () => {
  test('a range consists of whole UTC hours or days and includes the current one', () => {
    const week = toRange({ ...choice, range: '7d' }, now);
    assert.equal(iso(week.from), '2026-03-04T00:00:00.000Z');
    assert.equal(iso(week.to), '2026-03-11T00:00:00.000Z');
    assert.equal(toStarts(week).length, 7);
    const month = toRange(choice, now);
    assert.equal(iso(month.from), '2026-03-01T00:00:00.000Z');
    assert.equal(month.to, week.to);
    const day = toRange({ ...choice, range: '24h' }, now);
    assert.equal(day.step, 'hour');
    assert.equal(iso(day.to), '2026-03-10T16:00:00.000Z');
    assert.equal(toStarts(day).length, 24);
  });

  test('custom ranges include both days; long ranges are shown in days', () => {
    const days = { range: 'custom', from: '2026-01-01', to: '2026-01-02' };
    const short = toRange({ ...choice, ...days, step: 'hour' }, now);
    assert.equal(toStarts(short).length, 48);
    const long = toRange({ ...choice, ...days, to: '2026-03-31', step: 'hour' }, now);
    assert.equal(long.step, 'day');
    assert.equal(toStarts(long).length, 90);
    const invalid = toRange({ ...choice, ...days, to: 'x' }, now);
    assert.equal(toStarts(invalid).length, 10);
  });

  test('the hours of a running machine are split at midnight and end now', () => {
    const machine = {
      instance_id: 'a'.repeat(32),
      name: null,
      instance_type: 'cpu',
      region: 'us-west-1',
      status: 'active',
      price_cents_per_hour: 50,
      launched_at: '2026-03-09T22:00:00.000Z',
      terminated_at: null,
      seconds: 0,
      cents: 0,
    };
    const points = toMachinePoints([machine], toRange(choice, now), now);
    assert.deepEqual(
      points.map(({ totals }) => totals.hours),
      [2, 15 + 1 / 3],
    );
    assert.ok(Math.abs(toTotal(points).cost - 0.5 * (17 + 1 / 3)) < 1e-9);
  });

  test('groups beyond the seventh share one series, and nothing is lost', () => {
    const range = toRange({ ...choice, range: '7d' }, now);
    const points: UsagePoint[] = Array.from({ length: 10 }, (_, at) => ({
      start: range.from,
      group: `m.${at}`,
      label: `m.${at}`,
      totals: { ...zeroTotals, requests: at + 1, first_token_ms: 100 * (at + 1) },
    }));
    const { series, rows } = toChartData(points, 'requests', range);
    assert.equal(series.length, 8);
    assert.equal(series.at(-1)?.label, '3 others');
    assert.equal(rows.length, 7);
    const { at: _, ...bars } = rows[0] ?? {};
    const sum = Object.values(bars).reduce<number>((total, value) => total + Number(value), 0);
    assert.equal(sum, 55);
    assert.equal(toGroupTotals(points, 'requests')[0]?.id, 'm.9');
  });

  test('means are weighted by their number of requests', () => {
    const point = (requests: number, first_token_ms: number | null): UsagePoint => ({
      start: now,
      group: 'm',
      label: 'm',
      totals: { ...zeroTotals, requests, first_token_ms },
    });
    assert.equal(toTotal([point(3, 100), point(1, 200), point(5, null)]).first_token_ms, 125);
  });

  test('small amounts differ from zero, and large ones are grouped', () => {
    assert.equal(toMoney(0), '$0.00');
    assert.equal(toMoney(0.00000067), '$0.00000067');
    assert.equal(toMoney(0.5), '$0.50');
    assert.equal(toMoney(1234567.891), '$1,234,567.89');
    assert.equal(toDuration(89_500), '1 min 30 s');
    assert.equal(toHours(0.00021), '0.0002');
  });

  test('no CSV cell becomes a formula or breaks its row', () => {
    assert.equal(toCsv([['=1+1', 'a,"b"', -2, null]]), `'=1+1,"a,""b""",-2,\r\n`);
  });

  test('tags are parsed as key and value, and invalid ones are named', () => {
    assert.deepEqual(toTag('team = a=b'), { key: 'team', value: 'a=b' });
    assert.equal(findTagError(['team=vision', 'night']), null);
    assert.match(findTagError(['Team=x']) ?? '', /“Team” is not a valid tag key/);
    assert.match(findTagError(['team=x', 'team=y']) ?? '', /“team” is there twice/);
  });
});
