// Why instances are not well. The public API has no member for it that strict clients would take, so this
// asks as the person who is signed in, and without one says where to look.

import { createClient } from '#cli/client.ts';
import { loadCredentials } from '#cli/credentials.ts';
import { CliError } from '#cli/output.ts';

interface Detail {
  id: string;
  status_reason: string | null;
  last_error: string | null;
}

/** A sentence for each id that has a reason, or one for all of them. */
export async function explainInstances(ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const { url, session } = loadCredentials();
  const elsewhere = [
    `The reason is in the dashboard at ${url}, and here after \`millrace login\`.`,
  ];
  if (session === null) return elsewhere;
  try {
    const { data } = await createClient('session').get<{ data: Detail[] }>(
      '/dashboard/api/instances',
    );
    return data.flatMap(({ id, status_reason, last_error }) => {
      const reason = status_reason ?? last_error;
      return reason !== null && ids.includes(id) ? [`${id}: ${reason}`] : [];
    });
  } catch (error) {
    // A session that has ended must not hide what the key could see.
    if (error instanceof CliError) return elsewhere;
    throw error;
  }
}
