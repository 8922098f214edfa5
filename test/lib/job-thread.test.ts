// Jobs of a thread: their queue is bounded and fair, clients may leave, and a thread that dies is replaced.

import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { isMainThread, threadId } from 'node:worker_threads';
import { QueueRefusal } from '#lib/async/bounded-fair-queue.ts';
import { type JobCache, type JobLimits, JobThread, JobTooLarge } from '#lib/async/job-thread.ts';
import { systemClock } from '#lib/clock.ts';

interface Answer {
  question: string;
  threadId: number;
}

const file = new URL('../support/job-worker.ts', import.meta.url);

function startJobs(
  t: TestContext,
  limits: Partial<JobLimits> = {},
  cache?: JobCache<string, Answer>,
) {
  const jobs = new JobThread<string, Answer>(
    systemClock,
    { name: 'tests', file, resourceLimits: { maxOldGenerationSizeMb: 32 } },
    { maxLength: 10, maxWaitMs: 60_000, maxRunMs: 60_000, ...limits },
    cache === undefined ? {} : { cache },
  );
  t.after(() => jobs.close());
  return jobs;
}

const from = (caller: string, signal = new AbortController().signal) => ({
  caller,
  priority: 0,
  signal,
});

const isRefused = (error: unknown) => error instanceof QueueRefusal && error.reason === 'full';

test('a job runs in another thread, which the next job uses again', async (t) => {
  const jobs = startJobs(t);
  const first = await jobs.run('one', from('a'));
  const second = await jobs.run('two', from('b'));
  assert.ok(isMainThread);
  assert.equal(first.question, 'one');
  assert.notEqual(first.threadId, threadId);
  assert.equal(second.threadId, first.threadId);
});

test('a caller with many jobs delays another caller by one', async (t) => {
  const jobs = startJobs(t);
  const done: string[] = [];
  const run = async (question: string) => {
    await jobs.run(question, from(question.charAt(0)));
    done.push(question);
  };
  await Promise.all(['a1', 'a2', 'a3', 'a4', 'b1'].map(run));
  assert.deepEqual(done, ['a1', 'a2', 'b1', 'a3', 'a4']);
});

test('a full queue refuses the caller that fills it, and makes room for another', async (t) => {
  const jobs = startJobs(t, { maxLength: 2 });
  const running = jobs.run('a1', from('a'));
  const waiting = jobs.run('a2', from('a'));
  const newest = jobs.run('a3', from('a'));
  await assert.rejects(jobs.run('a4', from('a')), isRefused);
  const other = jobs.run('b1', from('b'));
  await assert.rejects(newest, isRefused);
  const answers = await Promise.all([running, waiting, other]);
  assert.deepEqual(
    answers.map(({ question }) => question),
    ['a1', 'a2', 'b1'],
  );
});

test('a client that leaves takes its job out of the queue', async (t) => {
  const asked: string[] = [];
  const jobs = startJobs(
    t,
    { maxLength: 1 },
    {
      get: () => undefined,
      set: (question) => void asked.push(question),
    },
  );
  const leaving = new AbortController();
  const running = jobs.run('running', from('a'));
  const waiting = jobs.run('waiting', from('a', leaving.signal));
  leaving.abort(new Error('the client went away'));
  await assert.rejects(waiting, /the client went away/);
  // There is a place again.
  await Promise.all([running, jobs.run('later', from('a'))]);
  assert.deepEqual(asked, ['running', 'later']);
  await assert.rejects(jobs.run('never', from('a', leaving.signal)), /the client went away/);
});

test('a job whose client has left while it ran is kept in the cache', async (t) => {
  const known = new Map<string, Answer>();
  const jobs = startJobs(
    t,
    {},
    {
      get: (question) => known.get(question),
      set: (question, answer) => void known.set(question, answer),
    },
  );
  const leaving = new AbortController();
  const running = jobs.run('one', from('a', leaving.signal));
  const same = jobs.run('one', from('a'));
  leaving.abort(new Error('the client went away'));
  await assert.rejects(running, /the client went away/);
  assert.equal(await same, known.get('one'));
  assert.equal(await jobs.run('one', from('a')), known.get('one'));
});

test('a thread that dies fails its job, and the next job starts another', async (t) => {
  const jobs = startJobs(t);
  const first = await jobs.run('one', from('a'));
  const dying = jobs.run('die', from('a'));
  const next = jobs.run('two', from('a'));
  await assert.rejects(dying, /the thread for tests has ended/);
  assert.notEqual((await next).threadId, first.threadId);
});

test('a job that takes too long ends with its thread, and the next job starts another', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const jobs = startJobs(t, { maxRunMs: 1000 });
  const first = await jobs.run('one', from('a'));
  const endless = jobs.run('loop', from('a'));
  const next = jobs.run('two', from('a'));
  t.mock.timers.tick(1000);
  await assert.rejects(endless, (error) => error instanceof JobTooLarge && error.limit === 'time');
  assert.notEqual((await next).threadId, first.threadId);
});

test('a job that takes too much memory ends its thread and not the process', async (t) => {
  const jobs = startJobs(t);
  const large = jobs.run('fill', from('a'));
  const next = jobs.run('two', from('a'));
  await assert.rejects(large, (error) => error instanceof JobTooLarge && error.limit === 'memory');
  assert.equal((await next).question, 'two');
});

test('closing fails waiting, running and later jobs', async (t) => {
  const jobs = startJobs(t);
  const all = [jobs.run('loop', from('a')), jobs.run('waiting', from('a'))];
  await Promise.all([jobs.close(), ...all.map((job) => assert.rejects(job, /was closed/))]);
  await assert.rejects(jobs.run('later', from('a')), /was closed/);
});
