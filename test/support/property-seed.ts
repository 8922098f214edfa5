// Property tests draw the same cases every time, so that a change is judged and not its luck. Another seed
// looks elsewhere: MILLRACE_TEST_SEED=$RANDOM npm test.

export const propertySeed = Number(process.env.MILLRACE_TEST_SEED ?? 20_261_115);
