// The seed of property tests, and how many cases they try. The seed is fixed, so that a run fails because of a change and not
// by chance. Set another to try other cases: MILLRACE_TEST_SEED=$RANDOM npm test.

import { inSoak } from './soak.ts';

export const propertySeed = Number(process.env.MILLRACE_TEST_SEED ?? 20_261_115);

const times = Number(process.env.MILLRACE_TEST_RUNS ?? 1);

/** How many cases are tried: all of them in the long form of the suite, a quarter in `npm test`. */
export const propertyRuns = (count: number): number => Math.ceil(inSoak(count / 4, count) * times);
