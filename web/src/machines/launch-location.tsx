// The part of a launch that says where: region, image, shared filesystems and firewall rulesets.

import { MultiSelect, Select, Skeleton, Stack } from '@mantine/core';
import { useEffect } from 'react';
import type { Image } from '#cloud/schema.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { toRegionOption } from '../components/use-region-select.tsx';
import { useFilesystems, useList, useRulesets } from '../queries.ts';
import { type LaunchPartProps, noRegion } from './launch-choice.ts';

export function LaunchLocation({ types, choice, onChange }: LaunchPartProps) {
  const images = useList<Image>(['images'], '/api/v1/images');
  const filesystems = useFilesystems();
  const rulesets = useRulesets();
  const regions = types?.[choice.type ?? '']?.regions_with_capacity_available ?? [];
  const region = choice.region ?? regions[0]?.name ?? null;
  const inRegion = <T extends { region: { name: string } }>(list: { data: T[] } | undefined) =>
    list?.data.filter((one) => one.region.name === region) ?? [];
  const regionImages = inRegion(images.data);
  const image = choice.image ?? regionImages[0]?.id ?? null;

  // Selects the first region and image, which the user can change.
  useEffect(() => {
    if (region !== choice.region || image !== choice.image) onChange({ region, image });
  });

  if (images.isPending || filesystems.isPending || rulesets.isPending)
    return <Skeleton h={220} aria-busy="true" />;
  const regionFilesystems = inRegion(filesystems.data);
  const regionRulesets = inRegion(rulesets.data);
  return (
    <Stack>
      <ErrorNotice error={images.error ?? filesystems.error} />
      <Select
        label="Region"
        data={regions.map(toRegionOption)}
        value={region}
        onChange={(value) => onChange({ ...noRegion, region: value })}
        allowDeselect={false}
      />
      <Select
        label="Image"
        description={regionImages.find(({ id }) => id === image)?.description}
        data={regionImages.map(({ id, name }) => ({ value: id, label: name }))}
        value={image}
        onChange={(value) => onChange({ image: value })}
        allowDeselect={false}
      />
      <MultiSelect
        label="Filesystems"
        description="Shared by all machines that mount them, and kept when machines are terminated."
        placeholder={regionFilesystems.length === 0 ? 'None in this region' : 'None'}
        disabled={regionFilesystems.length === 0}
        data={regionFilesystems.map(({ name }) => name)}
        value={choice.filesystems}
        onChange={(value) => onChange({ filesystems: value })}
      />
      {regionRulesets.length > 0 && (
        <MultiSelect
          label="Firewall rulesets"
          description="Apply in addition to the rules for all machines."
          placeholder="None"
          data={regionRulesets.map(({ id, name }) => ({ value: id, label: name }))}
          value={choice.rulesets}
          onChange={(value) => onChange({ rulesets: value })}
        />
      )}
    </Stack>
  );
}
