// Finds a person of the account by email address or id.

import type { Member } from '#accounts/schema.ts';
import type { Client } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import { listAll } from '#cli/pages.ts';
import { toSpellings } from '#lib/email.ts';

export const membersPath = '/dashboard/api/members';

export async function getMember(client: Client, wanted: string): Promise<Member> {
  const members = await listAll<Member>(client, membersPath);
  const spellings = toSpellings(wanted);
  const member = members.find(({ id, email }) => id === wanted || spellings.includes(email));
  if (member === undefined)
    throw new CliError(
      `No member has the email address or id ${wanted}. See \`millrace team list\`.`,
    );
  return member;
}
