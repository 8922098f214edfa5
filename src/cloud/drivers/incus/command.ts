// A command inside a machine, through the daemon's exec, which needs neither network nor ssh.

import type { DaemonClient } from './client.ts';

const timeoutMs = 30_000;

/** Runs it as root, and returns its exit code. Nothing of its output is kept. */
export async function runInside(
  client: DaemonClient,
  instancePath: string,
  command: readonly string[],
): Promise<number> {
  const body = { command, 'wait-for-websocket': false, interactive: false };
  const { metadata } = await client.run('POST', `${instancePath}/exec`, {
    body,
    waitMs: timeoutMs,
  });
  return Number(metadata?.return ?? 1);
}
