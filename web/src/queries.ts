// The lists that more than one page reads. Pages share a query key, so a change made on one page is seen on
// the others.

import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import type { ApiKey, Member } from '#accounts/schema.ts';
import type { Filesystem, InstanceTypes, Ruleset, SshKey } from '#cloud/schema.ts';
import { get, type List, type Page } from './api.ts';

export const apiKeysKey = ['api-keys'];
export const filesystemsKey = ['filesystems'];
export const instanceTypesKey = ['instance-types'];
export const membersKey = ['members'];
export const rulesetsKey = ['firewall-rulesets'];
export const sshKeysKey = ['ssh-keys'];

export const useApiKeys = (search: string) =>
  usePagedList<ApiKey>('api-keys', '/dashboard/api/api-keys', search === '' ? {} : { search });
export const useFilesystems = () => useList<Filesystem>(filesystemsKey, '/api/v1/file-systems');
export const useMembers = (filters: Record<string, string> = {}) =>
  usePagedList<Member>('members', '/dashboard/api/members', filters);
export const useRulesets = () => useList<Ruleset>(rulesetsKey, '/api/v1/firewall-rulesets');
export const useSshKeys = () => useList<SshKey>(sshKeysKey, '/api/v1/ssh-keys');

export function useInstanceTypes() {
  return useQuery({
    queryKey: instanceTypesKey,
    queryFn: () => get<{ data: InstanceTypes }>('/api/v1/instance-types'),
  });
}

export function useList<T>(queryKey: string[], path: string) {
  return useQuery({ queryKey, queryFn: () => get<List<T>>(path) });
}

const pageSize = '50';

/** A list that is read page by page, newest first. */
export function usePagedList<T>(
  queryKey: string,
  path: string,
  filters: Record<string, string> = {},
) {
  return useInfiniteQuery({
    queryKey: [queryKey, filters],
    initialPageParam: null as string | null,
    queryFn: ({ pageParam }) => {
      const query = new URLSearchParams({ limit: pageSize, ...filters });
      if (pageParam !== null) query.set('before', pageParam);
      return get<Page<T>>(`${path}?${query}`);
    },
    getNextPageParam: ({ next }) => next,
    select: ({ pages }) => pages.flatMap(({ data }) => data),
  });
}
