// The people of the account as commands list and find them.

import type { Member } from '#accounts/schema.ts';
import { findOnly } from '#cli/find.ts';
import type { Noun } from '#cli/noun.ts';
import { inPages } from '#cli/pages.ts';
import { toSpellings } from '#lib/text/email.ts';

export const membersPath = '/dashboard/api/members';

export const members: Noun<Member> = {
  noun: 'member',
  plural: 'people',
  command: 'millrace team list',
  needs: 'session',
  argument: ['<email>', 'Email address, id or its first characters, from `millrace team list`'],
  namesOf: ({ email }) => [email],
  read: inPages(membersPath),
  async find(client, wanted) {
    const all = await members.read(client);
    const spellings = toSpellings(wanted);
    return all.find(({ email }) => spellings.includes(email)) ?? findOnly(all, wanted, members);
  },
};
