// The long form of fuzz.test.ts: `node test/http/client/fuzz.ts [seconds]` tries random responses for 60 s, or as
// long as you say, and prints the runs and the seed. Set MILLRACE_TEST_SEED to repeat a run. Not part of `npm test`.

import { randomInt } from 'node:crypto';
import fc from 'fast-check';
import { checkMutant, checkValid, deliveries } from '#test/support/http-client/check-response.ts';
import { createNodeClient } from '#test/support/http-client/node-client.ts';
import { cuts, mutants, responses } from '#test/support/http-responses.ts';

const seconds = Number(process.argv[2] ?? 60);
if (!(seconds > 0)) throw new Error(`seconds must be a positive number, got ${process.argv[2]}.`);
const seed = Number(process.env.MILLRACE_TEST_SEED ?? randomInt(2 ** 31));
console.log(`seed ${seed}, ${seconds} s`);
await using node = await createNodeClient();

const runs: Record<string, number> = {};
const count = (outcome: string) => {
  runs[outcome] = (runs[outcome] ?? 0) + 1;
};

/** A quarter of the time is for valid responses: mutants find more. */
const assertFor = <Given>(property: fc.IAsyncProperty<Given>, share: number) =>
  fc.assert(property, {
    seed,
    numRuns: Number.MAX_SAFE_INTEGER,
    interruptAfterTimeLimit: seconds * 1000 * share,
  });

await assertFor(
  fc.asyncProperty(responses, cuts, async (response, places) => {
    await checkValid(node, response, places);
    count('valid');
  }),
  0.25,
);
await assertFor(
  fc.asyncProperty(mutants, deliveries, async (text, delivery) => {
    count(`mutant ${await checkMutant(node, text, delivery)}`);
  }),
  0.75,
);
const outcomes = Object.entries(runs).map(([outcome, times]) => `${times} ${outcome}`);
console.log(`No failure: ${outcomes.join(', ')}.`);
