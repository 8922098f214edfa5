// Where the engine of a deployment runs: beside the server, or on machines of an instance type.

import { Select } from '@mantine/core';
import { toHourlyPrice } from '#lib/format.ts';
import { useInstanceTypes } from '../queries.ts';

interface PlaceSelectProps {
  /** `host`, or an instance type. */
  value: string;
  onChange: (value: string) => void;
}

export function PlaceSelect({ value, onChange }: PlaceSelectProps) {
  const types = useInstanceTypes();
  // A type without capacity now may have some when the next replica starts, but is rarely wanted.
  const offered = Object.values(types.data?.data ?? {}).filter(
    ({ instance_type, regions_with_capacity_available }) =>
      regions_with_capacity_available.length > 0 || instance_type.name === value,
  );
  const options = offered.map(({ instance_type: type }) => ({
    value: type.name,
    label: `${type.name}, ${toHourlyPrice(type.price_cents_per_hour)}`,
  }));
  return (
    <Select
      label="Runs on"
      description="A machine for each replica, or this server."
      data={[{ value: 'host', label: 'This server' }, ...options]}
      allowDeselect={false}
      searchable
      value={value}
      onChange={(next) => onChange(next ?? value)}
    />
  );
}
