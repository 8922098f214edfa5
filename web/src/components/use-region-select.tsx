// The field for a region. It starts with a region that has capacity: what is created in another one can't be
// used by this server's machines.

import { useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { get, type List } from '../api.ts';
import { useInstanceTypes } from '../queries.ts';
import { SelectField } from './fields.tsx';

interface Region {
  name: string;
  description: string;
}

interface RegionSelectOptions {
  description?: string;
  /** The region of something that exists; it can't be changed. */
  fixed?: string | undefined;
}

interface RegionSelect {
  /** Null while the regions load. */
  region: string | null;
  error: Error | null;
  field: ReactNode;
}

export function useRegionSelect({ description, fixed }: RegionSelectOptions = {}): RegionSelect {
  const [chosen, setChosen] = useState<string | null>(fixed ?? null);
  const regions = useQuery({
    queryKey: ['regions'],
    queryFn: () => get<List<Region>>('/api/v1/regions'),
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
  });
  const types = useInstanceTypes();
  const withCapacity = Object.values(types.data?.data ?? {}).flatMap(
    (offer) => offer.regions_with_capacity_available,
  );
  const all = regions.data?.data ?? [];
  const preferred = types.isPending ? undefined : (withCapacity[0] ?? all[0]);
  const region = chosen ?? preferred?.name ?? null;
  const field = (
    <SelectField
      name="region"
      label="Region"
      description={description}
      data={all.map(toRegionOption)}
      value={region}
      onChange={setChosen}
      disabled={fixed !== undefined}
      allowDeselect={false}
      searchable
    />
  );
  return { region, error: regions.error ?? types.error, field };
}

export const toRegionOption = ({ name, description }: Region) => ({
  value: name,
  label: `${name} · ${description}`,
});
