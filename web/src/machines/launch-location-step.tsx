// The second step of a launch: region, image, and the shared filesystems to mount.

import { MultiSelect, Select, Skeleton, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { Filesystem, Image, Ruleset } from '#cloud/schema.ts';
import { get, type List } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { type LaunchStepProps, noRegion } from './launch-choice.ts';

export function LocationStep({ types, choice, onChange }: LaunchStepProps) {
  const images = useQuery({
    queryKey: ['images'],
    queryFn: () => get<List<Image>>('/api/v1/images'),
  });
  const filesystems = useQuery({
    queryKey: ['filesystems'],
    queryFn: () => get<List<Filesystem>>('/api/v1/file-systems'),
  });
  const rulesets = useQuery({
    queryKey: ['firewall-rulesets'],
    queryFn: () => get<List<Ruleset>>('/api/v1/firewall-rulesets'),
  });
  const regions = types?.[choice.type ?? '']?.regions_with_capacity_available ?? [];
  const region = choice.region ?? regions[0]?.name ?? null;
  const fitting = images.data?.data.filter((one) => one.region.name === region) ?? [];
  const image = choice.image ?? fitting[0]?.id ?? null;

  // The usual choice is made for people; they see it here and can change it.
  useEffect(() => {
    if (region !== choice.region || image !== choice.image) onChange({ region, image });
  });

  if (images.isPending || filesystems.isPending || rulesets.isPending)
    return <Skeleton h={220} aria-busy="true" />;
  const shares = filesystems.data?.data.filter((one) => one.region.name === region) ?? [];
  const sets = rulesets.data?.data.filter((one) => one.region.name === region) ?? [];
  return (
    <Stack>
      <ErrorNotice error={images.error ?? filesystems.error} />
      <Select
        label="Region"
        data={regions.map(({ name, description }) => ({
          value: name,
          label: `${name} · ${description}`,
        }))}
        value={region}
        onChange={(value) => onChange({ ...noRegion, region: value })}
        allowDeselect={false}
      />
      <Select
        label="Image"
        description={fitting.find(({ id }) => id === image)?.description}
        data={fitting.map(({ id, name }) => ({ value: id, label: name }))}
        value={image}
        onChange={(value) => onChange({ image: value })}
        allowDeselect={false}
      />
      <MultiSelect
        label="Filesystems"
        description="Shared by all machines that mount them, and kept when machines end."
        placeholder={shares.length === 0 ? 'None in this region' : 'None'}
        disabled={shares.length === 0}
        data={shares.map(({ name }) => name)}
        value={choice.filesystems}
        onChange={(value) => onChange({ filesystems: value })}
      />
      {sets.length > 0 && (
        <MultiSelect
          label="Firewall rulesets"
          description="In addition to the rules for all machines."
          placeholder="None"
          data={sets.map(({ id, name }) => ({ value: id, label: name }))}
          value={choice.rulesets}
          onChange={(value) => onChange({ rulesets: value })}
        />
      )}
    </Stack>
  );
}
