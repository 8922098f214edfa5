// Chooses the suites of `npm run test:quick`: those that need no browser, PostgreSQL, LXD or other program and little processor time.
// It takes under a minute on two cores. Every suite runs unless a pattern below leaves it out; `npm test` runs all.

import { matchesGlob } from 'node:path';

/** Patterns of the suites that are left out, by the reason. */
const leftOut: Readonly<Record<string, readonly string[]>> = {
  'It needs a browser or the built dashboard.': [
    'test/dashboard/!(chat-code|sse|usage-numbers).test.ts',
  ],
  'It needs root, LXD or ssh.': [
    'test/cloud/drivers/*/!(parts).test.ts',
    'test/cloud/instances/first-machine.test.ts',
    'test/deployments/{kills,machines,machine-crash}.test.ts',
  ],
  'It needs Redis.': ['test/accounts/limits/{replicas,store}.test.ts'],
  'It runs a model.': [
    'test/inference/apis/*.test.ts',
    'test/inference/engines/local/*.test.ts',
    'test/inference/engines/local/grammar/engine.test.ts',
    'test/inference/models/memory-budget.test.ts',
    'test/inference/serving/{continued-model,mixed-backends}.test.ts',
    'test/inference/weights/{restart,routes,serve}.test.ts',
  ],
  'It starts the program, a server or a cloud many times.': [
    'test/accounts/*.test.ts',
    'test/accounts/limits/{crash,http,routes}.test.ts',
    'test/accounts/usage/!(migration).test.ts',
    'test/backup/*.test.ts',
    'test/cli/*.test.ts',
    'test/cloud/api/{audit-events,dashboard}.test.ts',
    'test/cloud/hosts/{api,hosts,servers}.test.ts',
    'test/cloud/instances/life-cycle.test.ts',
    'test/cloud/resources/{firewall,ssh-keys}.test.ts',
    'test/inference/backends/{live,reload}.test.ts',
    'test/inference/engines/upstream/{aimock,conformance}.test.ts',
    'test/inference/serving/{continued-streams,fallback-token-count,implausible-counts}.test.ts',
    'test/inference/serving/{overload,traces}.test.ts',
    'test/server/!(clock-set-back).test.ts',
  ],
  'It sends, stores or computes a great deal.': [
    'test/attack/{api-bodies,hostile}.test.ts',
    'test/cloud/instances/many-instances.test.ts',
    'test/cloud/reconcile/crash.test.ts',
    'test/inference/engines/local/grammar/{hostile,property,thread}.test.ts',
    'test/inference/engines/upstream/large-responses.test.ts',
    'test/inference/weights/weights.test.ts',
  ],
};

/** Suites that a pattern above matches but that are quick all the same. */
const keptIn = ['test/inference/engines/local/parts.test.ts'];

export function chooseQuick(suites: readonly string[]): string[] {
  const patterns = Object.values(leftOut).flat();
  const stale = patterns.filter((one) => !suites.some((suite) => matchesGlob(suite, one)));
  if (stale.length > 0) throw new Error(`test/quick.ts leaves out what is not there: ${stale}`);
  return suites.filter(
    (suite) => keptIn.includes(suite) || !patterns.some((one) => matchesGlob(suite, one)),
  );
}
