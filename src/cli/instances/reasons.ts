// Why instances are unhealthy. Strict clients of the public API would reject an extra member, so the reason
// comes from the dashboard's API, which needs a session. Without one, the user is told where to look.

import { createClient } from '#cli/client.ts';
import { loadCredentials } from '#cli/credentials.ts';
import { CliError } from '#cli/output.ts';
import { listAll } from '#cli/pages.ts';
import { programName } from '#config/environment.ts';
import { toPrintable } from '#lib/text/printable.ts';

interface Detail {
  id: string;
  status_reason: string | null;
  last_error: string | null;
}

/** One sentence per id that has a reason, or one sentence that says where to find the reasons. */
export async function explainInstances(ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const { url, session } = loadCredentials();
  const whereToLook = [
    `For the reason, see the dashboard at ${url}, or run \`${programName()} login\` and try again.`,
  ];
  if (session === null) return whereToLook;
  try {
    const all = await listAll<Detail>(createClient('session'), '/dashboard/api/instances');
    return all.flatMap(({ id, status_reason, last_error }) => {
      const reason = status_reason ?? last_error;
      return reason !== null && ids.includes(id) ? [toPrintable(`${id}: ${reason}`)] : [];
    });
  } catch (error) {
    // An expired session must not hide what the API key can see.
    if (error instanceof CliError) return whereToLook;
    throw error;
  }
}
