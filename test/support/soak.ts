// `npm run test:soak` is the long form of the suite: more rounds, both databases everywhere, clusters and coding agents. It
// runs the files `*.soak.ts` besides all others.

export const isSoak = process.env.MILLRACE_TEST_SOAK === '1';

/** Chooses how much a test does in `npm test`, and in the long form. */
export const inSoak = <T>(short: T, long: T): T => (isSoak ? long : short);
