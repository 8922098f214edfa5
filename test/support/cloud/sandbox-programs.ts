// What tests of real sandboxes need: a kernel that allows namespaces, and the programs that the driver runs.

import { tmpdir } from 'node:os';
import { findObstacle } from '#cloud/drivers/sandbox/host.ts';
import { needs, skipFor, use } from '#test/support/programs.ts';

export const isRoot = process.getuid?.() === 0;

const obstacle = await findObstacle(isRoot, tmpdir());

/** Returns why tests that launch sandboxes and run these programs are skipped, or false. Machines have a network if this
 * computer has the programs for it. */
export function needsSandbox(...names: string[]): string | false {
  if (obstacle !== null) return skipFor(obstacle);
  use('ip', 'nft');
  return needs(...names);
}
