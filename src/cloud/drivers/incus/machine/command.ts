// A command inside a machine, through the daemon's exec, which needs neither network nor ssh.

import type { DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import { shellQuote } from '#lib/text/shell-quote.ts';

/** Default limit of a command. */
const defaultSeconds = 30;
/** Limit of a command whose output is read, for a person who looks at it. */
const readSeconds = 3;
/** What the daemon may take besides the command. */
const graceMs = 10_000;

/**
 * Runs it as root, and returns its exit code. Nothing of its output is kept. It is ended inside the
 * machine, because the daemon can't cancel it.
 */
export async function runInside(
  client: DaemonClient,
  instancePath: string,
  command: readonly string[],
  maxSeconds = defaultSeconds,
): Promise<number> {
  const result = await execute(client, instancePath, command, { maxSeconds });
  return Number(result.return ?? 1);
}

/** Runs it as root for at most three seconds, and returns the beginning of its output, whatever its exit code. */
export async function readInside(
  client: DaemonClient,
  instancePath: string,
  command: readonly string[],
  maxBytes: number,
): Promise<string> {
  // The daemon stores all of the output.
  const bounded = `${command.map(shellQuote).join(' ')} 2>/dev/null | head -c ${maxBytes}`;
  const options = { maxSeconds: readSeconds, keepsOutput: true };
  const { output } = await execute(client, instancePath, ['sh', '-c', bounded], options);
  const files = Object.entries((output ?? {}) as Record<string, string>);
  try {
    const [, printed] = files.find(([stream]) => stream === '1') ?? [];
    const bytes = printed === undefined ? undefined : await client.bytes(printed, maxBytes);
    return bytes?.toString() ?? '';
  } finally {
    for (const [, file] of files) await client.run('DELETE', file).catch(() => {});
  }
}

async function execute(
  client: DaemonClient,
  instancePath: string,
  command: readonly string[],
  { maxSeconds, keepsOutput = false }: { maxSeconds: number; keepsOutput?: boolean },
): Promise<Readonly<Record<string, unknown>>> {
  const bounded = ['timeout', '-s', 'KILL', `${maxSeconds}`, ...command];
  const { metadata } = await client.run('POST', `${instancePath}/exec`, {
    body: {
      command: bounded,
      'wait-for-websocket': false,
      interactive: false,
      'record-output': keepsOutput,
    },
    waitMs: maxSeconds * 1_000 + graceMs,
  });
  return metadata ?? {};
}
