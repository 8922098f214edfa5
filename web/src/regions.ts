// Regions, and the one that machines of this server are in: what is made elsewhere can't be used by them.

import { useQuery } from '@tanstack/react-query';
import type { InstanceTypes } from '#cloud/schema.ts';
import { get, type List } from './api.ts';

interface Region {
  name: string;
  description: string;
}

export function useRegions() {
  const regions = useQuery({
    queryKey: ['regions'],
    queryFn: () => get<List<Region>>('/api/v1/regions'),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const types = useQuery({
    queryKey: ['instance-types'],
    queryFn: () => get<{ data: InstanceTypes }>('/api/v1/instance-types'),
  });
  const withCapacity = Object.values(types.data?.data ?? {}).flatMap(
    (offer) => offer.regions_with_capacity_available,
  );
  const all = regions.data?.data ?? [];
  return {
    error: regions.error ?? types.error,
    home: (types.isPending ? undefined : (withCapacity[0] ?? all[0]))?.name ?? null,
    choices: all.map(({ name, description }) => ({
      value: name,
      label: `${name} · ${description}`,
    })),
  };
}
