// Times with a higher minimum of replicas.

import assert from 'node:assert/strict';
import { afterEach, before, describe, test } from 'node:test';
import { createSchedule } from '#deployments/decision/schedule.ts';
import { parseTimeWindow, type TimeWindow, toTimeText } from '#lib/text/schedule-text.ts';
import { createRunningClock } from '#test/support/clock.ts';
import { openTestDeployments, type TestDeployments } from '#test/support/deployments.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const parse = (text: string): TimeWindow => {
  const window = parseTimeWindow(text);
  assert(window !== undefined, text);
  return window;
};
/** The minimum at each of the UTC times. 2026-11-16 is a Monday. */
const minsAt = (lines: string[], ...times: string[]) => {
  const schedule = createSchedule(lines.map(parse));
  return times.map((time) => schedule(Date.parse(`2026-${time}:00Z`)));
};

describe('a schedule', () => {
  test('raises the minimum on its days, from its beginning to its end', () => {
    const mins = minsAt(
      ['mon-fri 08:00-18:00 2'],
      ...['11-16T07:59', '11-16T08:00', '11-16T17:59', '11-16T18:00', '11-21T12:00'],
    );
    assert.deepEqual(mins, [0, 2, 2, 0, 0]);
  });

  test('may go over midnight and the end of the week', () => {
    const mins = minsAt(
      ['sun 22:00-06:00 1'],
      ...['11-15T21:59', '11-15T22:00', '11-16T05:59', '11-16T06:00', '11-16T22:00'],
    );
    assert.deepEqual(mins, [0, 1, 1, 0, 0]);
    assert.deepEqual(minsAt(['daily 00:00-00:00 3'], '11-16T00:00', '11-18T23:59'), [3, 3]);
  });

  test('follows daylight saving time, and the highest of several times counts', () => {
    const berlin = ['daily 08:00-09:00 1 Europe/Berlin', 'daily 08:30-09:00 4 Europe/Berlin'];
    // Summer time ends on October 25.
    const mins = minsAt(berlin, '10-24T06:00', '10-24T07:00', '10-26T07:00', '10-26T07:30');
    assert.deepEqual(mins, [1, 0, 1, 4]);
  });

  test('is written and read as a line', () => {
    const lines = [
      'mon-fri 08:00-18:00 2 Europe/Berlin',
      'sat,sun 10:00-12:00 1 UTC',
      'daily 00:00-06:00 3 UTC',
    ];
    for (const line of lines) assert.equal(toTimeText(parse(line)), line);
    for (const wrong of ['mon 8-18 2', 'fri-mon 08:00-18:00 2', 'someday 08:00-18:00 2', ''])
      assert.equal(parseTimeWindow(wrong), undefined, wrong);
  });
});

describe('a deployment with a schedule', () => {
  const clock = createRunningClock(Date.parse('2026-11-16T07:00:00Z'));
  let server: TestServer;
  let deployments: TestDeployments;
  before(async () => {
    server = await startTestServer({ clock });
    deployments = openTestDeployments(server, await server.join(), clock);
  });
  afterEach(() => deployments.removeAll());
  const schedule = [parse('mon-fri 08:00-18:00 2')];

  test('has replicas when the time begins, and none when it is over', async () => {
    await deployments.create('tested', { max: 2, ladder: { gone: 1 }, schedule });
    const { status, current_min } = await deployments.show('tested');
    assert.deepEqual([status, current_min], ['idle', 0]);
    clock.turn(3_600_000);
    await clock.until('both are ready', async () => {
      const { replicas } = await deployments.show('tested');
      return replicas.filter(({ state }) => state === 'ready').length === 2;
    });
    assert.equal((await deployments.show('tested')).current_min, 2);
    clock.turn(10 * 3_600_000);
    await clock.until(
      'none is left',
      async () => (await deployments.show('tested')).status === 'idle',
    );
  });

  test('that asks for more than the maximum, or names no time zone, is refused', async () => {
    const refusals: [object, RegExp][] = [
      [{ schedule }, /has min 2, which is more than max, 1/],
      [
        { schedule: [{ ...schedule[0], min: 1, time_zone: 'Mars/Base' }] },
        /time zone "Mars\/Base"/,
      ],
      [{ schedule: [{ ...schedule[0], from: '25:00' }] }, /from/],
    ];
    for (const [given, message] of refusals) {
      const { status, error } = await deployments.create('tested', given);
      assert.equal(status, 400);
      assert.match(error?.message ?? '', message);
    }
  });
});
