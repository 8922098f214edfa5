// Hosts as commands list and find them.

import type { Noun } from '#cli/noun.ts';
import { atOnce } from '#cli/pages.ts';
import type { HostView } from '#cloud/hosts/schema.ts';

export const hosts: Noun<HostView> = {
  noun: 'host',
  plural: 'hosts',
  command: 'millrace hosts list',
  needs: 'session',
  argument: ['<host>', 'Name or id, from `millrace hosts list`'],
  namesOf: ({ name }) => [name],
  read: atOnce('/dashboard/api/hosts'),
};

export const toHostPath = ({ name }: { readonly name: string }) =>
  `/dashboard/api/hosts/${encodeURIComponent(name)}`;
