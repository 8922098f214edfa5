// A command inside a machine, through the daemon's exec, which needs neither network nor ssh.

import type { DaemonClient } from './client.ts';

/** Default limit of a command. */
const defaultSeconds = 30;
/** What the daemon may take besides the command. */
const graceMs = 10_000;

/**
 * Runs it as root, and returns its exit code. Nothing of its output is kept. It is ended inside the machine, because the
 * daemon can't cancel it.
 */
export async function runInside(
  client: DaemonClient,
  instancePath: string,
  command: readonly string[],
  maxSeconds = defaultSeconds,
): Promise<number> {
  const bounded = ['timeout', '-s', 'KILL', `${maxSeconds}`, ...command];
  const body = { command: bounded, 'wait-for-websocket': false, interactive: false };
  const { metadata } = await client.run('POST', `${instancePath}/exec`, {
    body,
    waitMs: maxSeconds * 1_000 + graceMs,
  });
  return Number(metadata?.return ?? 1);
}
