// How long a download will take, as refused requests of a deployment are told.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TransferEstimate } from '#inference/weights/transfer-estimate.ts';

const total = 10_000_000_000;

test('what is left of a download takes as long as its last seconds say', () => {
  const estimate = new TransferEstimate();
  assert.equal(estimate.leftMs(0, 0, total), 160_000);
  assert.equal(estimate.leftMs(10_000, 1_000_000_000, total), 90_000);
  // It has become ten times slower.
  for (let at = 11_000; at <= 60_000; at += 1_000)
    estimate.leftMs(at, 1_000_000_000 + (at - 10_000) * 10_000, total);
  assert.equal(estimate.leftMs(60_000, 1_500_000_000, total), 850_000);
});

test('a download that stalls or is done has a finite estimate', () => {
  const estimate = new TransferEstimate();
  estimate.leftMs(0, 5_000, total);
  assert.equal(estimate.leftMs(5_000, 5_000, total), 3_600_000);
  assert.equal(estimate.leftMs(6_000, total, total), 0);
});
