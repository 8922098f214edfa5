// Where the engine of a deployment runs: beside the server, or on machines of an instance type.

import { Group, Select, Text } from '@mantine/core';
import type { Place } from './places.ts';

interface PlaceSelectProps {
  places: readonly Place[];
  value: string;
  onChange: (value: string) => void;
}

export function PlaceSelect({ places, value, onChange }: PlaceSelectProps) {
  const fitOf = new Map(places.map(({ name, fit }) => [name, fit]));
  return (
    <Select
      label="Runs on"
      description="A machine for each replica, or this server."
      data={places.map(({ name, label }) => ({ value: name, label }))}
      renderOption={({ option }) => (
        <Group justify="space-between" gap="sm" className="grow">
          {option.label}
          <Fit fit={fitOf.get(option.value)} />
        </Group>
      )}
      allowDeselect={false}
      searchable
      value={value}
      onChange={(next) => onChange(next ?? value)}
    />
  );
}

function Fit({ fit }: Pick<Place, 'fit'>) {
  if (fit === undefined) return null;
  return (
    <Text size="xs" c="dimmed">
      {fit.fits ? 'fits' : 'too small'}, {fit.usable_gib} GiB
    </Text>
  );
}
