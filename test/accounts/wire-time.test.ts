// Times in queries: what the schema accepts but JavaScript can't parse is refused by name.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseOptionalTime, parseTime } from '#accounts/wire-time.ts';

test('a leap second is refused, and the error names the parameter', () => {
  assert.throws(() => parseOptionalTime('at', '2016-12-31T23:59:60Z'), {
    message: 'at is not a time.',
    param: 'at',
  });
  assert.equal(parseTime('from', '1970-01-01T00:00:01Z'), 1000);
  assert.equal(parseOptionalTime('from', undefined), undefined);
});
