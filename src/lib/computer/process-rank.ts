// How much the operating system values this process beside others.

import { readFileSync, writeFileSync } from 'node:fs';
import { constants, setPriority } from 'node:os';

/** The kernel ends machines before models, which can be loaded again, and models before the server. */
const modelScore = 250;

/** Lets the kernel end this process before the server if memory runs out. Raising the score needs no privilege. */
export function yieldMemory(): void {
  const file = '/proc/self/oom_score_adj';
  try {
    // The score that is inherited from the server may be far below zero.
    if (Number(readFileSync(file, 'utf8')) < modelScore) writeFileSync(file, String(modelScore));
  } catch {
    // Only Linux has the file.
  }
}

/** Lets other processes go first. Thousands of texts may wait to be embedded, and a chat must not wait for them. */
export function yieldProcessor(): void {
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // Only the speed of other models depends on it.
  }
}
