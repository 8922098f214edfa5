// The seed of property tests. It is fixed, so that a run fails because of a change and not by chance. Set another to
// try other cases: MILLRACE_TEST_SEED=$RANDOM npm test.

export const propertySeed = Number(process.env.MILLRACE_TEST_SEED ?? 20_261_115);

/** How many times as many cases as usual are tried. */
export const propertyRuns = Number(process.env.MILLRACE_TEST_RUNS ?? 1);
