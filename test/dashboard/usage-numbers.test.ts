// What the usage page reckons by itself: spans of time, machines' hours, groups of a plot, amounts in words.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { toCsv } from '../../web/src/format/csv.ts';
import { toDuration, toHours, toMoney } from '../../web/src/format/numbers.ts';
import { findTagError, toTag } from '../../web/src/machines/tags.ts';
import { toRange, toStarts } from '../../web/src/usage/time-range.ts';
import { toMachineCells } from '../../web/src/usage/usage-data.ts';
import {
  type Cell,
  none,
  toGroupTotals,
  toPlot,
  toTotal,
} from '../../web/src/usage/usage-totals.ts';

const now = Date.parse('2026-03-10T15:20:00Z');
const choice = { range: null, step: null, from: null, to: null };
const iso = (at: number) => new Date(at).toISOString();

describe('usage in numbers', () => {
  test('a span is whole UTC hours or days and holds the one that runs', () => {
    const week = toRange(choice, now);
    assert.equal(iso(week.from), '2026-03-04T00:00:00.000Z');
    assert.equal(iso(week.to), '2026-03-11T00:00:00.000Z');
    assert.equal(toStarts(week).length, 7);
    const day = toRange({ ...choice, range: '24h' }, now);
    assert.equal(day.step, 'hour');
    assert.equal(iso(day.to), '2026-03-10T16:00:00.000Z');
    assert.equal(toStarts(day).length, 24);
  });

  test('chosen days are both included; a span too long for hours is shown in days', () => {
    const days = { range: 'custom', from: '2026-01-01', to: '2026-01-02' };
    const short = toRange({ ...choice, ...days, step: 'hour' }, now);
    assert.equal(toStarts(short).length, 48);
    const long = toRange({ ...choice, ...days, to: '2026-03-31', step: 'hour' }, now);
    assert.equal(long.step, 'day');
    assert.equal(toStarts(long).length, 90);
    const nonsense = toRange({ ...choice, ...days, to: 'x' }, now);
    assert.equal(toStarts(nonsense).length, 7);
  });

  test('a machine’s hours are cut at midnight and end now', () => {
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
    const cells = toMachineCells([machine], toRange(choice, now), now);
    assert.deepEqual(
      cells.map(({ amounts }) => amounts.hours),
      [2, 15 + 1 / 3],
    );
    assert.ok(Math.abs(toTotal(cells).cost - 0.5 * (17 + 1 / 3)) < 1e-9);
  });

  test('what is beyond seven groups is plotted as one, and nothing is lost', () => {
    const range = toRange(choice, now);
    const cells: Cell[] = Array.from({ length: 10 }, (_, at) => ({
      start: range.from,
      group: `m.${at}`,
      label: `m.${at}`,
      amounts: { ...none, requests: at + 1, first_token_ms: 100 * (at + 1) },
    }));
    const { series, data } = toPlot(cells, 'requests', range);
    assert.equal(series.length, 8);
    assert.equal(series.at(-1)?.label, '3 others');
    assert.equal(data.length, 7);
    const { at: _, ...bars } = data[0] ?? {};
    const sum = Object.values(bars).reduce<number>((total, value) => total + Number(value), 0);
    assert.equal(sum, 55);
    assert.equal(toGroupTotals(cells, 'requests')[0]?.id, 'm.9');
  });

  test('a mean counts as often as it has requests behind it', () => {
    const cell = (requests: number, first_token_ms: number | null): Cell => ({
      start: now,
      group: 'm',
      label: 'm',
      amounts: { ...none, requests, first_token_ms },
    });
    assert.equal(toTotal([cell(3, 100), cell(1, 200), cell(5, null)]).first_token_ms, 125);
  });

  test('little money is told from none, and much is easy to read', () => {
    assert.equal(toMoney(0), '$0.00');
    assert.equal(toMoney(0.00000067), '$0.00000067');
    assert.equal(toMoney(0.5), '$0.50');
    assert.equal(toMoney(1234567.891), '$1,234,567.89');
    assert.equal(toDuration(89_500), '1 min 30 s');
    assert.equal(toHours(0.00021), '0.0002');
  });

  test('no cell of a file becomes a formula or breaks its row', () => {
    assert.equal(toCsv([['=1+1', 'a,"b"', -2, null]]), `'=1+1,"a,""b""",-2,\r\n`);
  });

  test('tags are read as key and value, and wrong ones are named', () => {
    assert.deepEqual(toTag('team = a=b'), { key: 'team', value: 'a=b' });
    assert.equal(findTagError(['team=vision', 'night']), null);
    assert.match(findTagError(['Team=x']) ?? '', /“Team” can’t be a tag/);
    assert.match(findTagError(['team=x', 'team=y']) ?? '', /“team” is there twice/);
  });
});
