// Finds a person of the account by email address, id, or the first characters of the id.

import type { Member } from '#accounts/schema.ts';
import type { Client } from '#cli/client.ts';
import { findOnly } from '#cli/find.ts';
import { listAll } from '#cli/pages.ts';
import { toSpellings } from '#lib/text/email.ts';

export const membersPath = '/dashboard/api/members';

export async function getMember(client: Client, wanted: string): Promise<Member> {
  const members = await listAll<Member>(client, membersPath);
  const spellings = toSpellings(wanted);
  const spelled = members.find(({ email }) => spellings.includes(email));
  if (spelled !== undefined) return spelled;
  return findOnly(members, wanted, {
    noun: 'member',
    command: 'millrace team list',
    namesOf: ({ email }) => [email],
  });
}
