// The child process of a model, without a model.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { startModelProcess } from '#inference/engines/local/parent/model-process.ts';
import type { ToParent } from '#inference/engines/local/protocol.ts';

const scoreOf = (id: string | number) =>
  Number(readFileSync(`/proc/${id}/oom_score_adj`, 'utf8').trim());

test('the kernel ends a model before the server', {
  skip: !existsSync('/proc/self/oom_score_adj') && 'only Linux has a score for this',
}, async (t) => {
  const answered = Promise.withResolvers<void>();
  const events = {
    message: ({ kind }: ToParent) => kind === 'pong' && answered.resolve(),
    exit: (reason: string) => answered.reject(new Error(reason)),
    output() {},
  };
  const child = startModelProcess(events, 1);
  t.after(() => child.close());
  child.send({ kind: 'ping' });
  await answered.promise;
  assert(scoreOf(child.pid as number) >= Math.max(scoreOf('self'), 250));
});
