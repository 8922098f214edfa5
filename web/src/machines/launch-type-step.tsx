// The first step of a launch: the type of machine, with its price and availability.

import { Button, Group, Radio, Skeleton, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { InstanceTypes } from '#cloud/schema.ts';
import { toCounted, toHourlyPrice } from '#lib/format.ts';
import { type LaunchStepProps, noRegion } from './launch-choice.ts';

type Offer = InstanceTypes[string];

export function TypeStep({ types, choice, onChange }: LaunchStepProps) {
  const [showsAll, setShowsAll] = useState(false);
  if (types === undefined) return <Skeleton h={220} aria-busy="true" />;
  const offers = Object.values(types);
  const ready = offers.filter((offer) => offer.regions_with_capacity_available.length > 0);
  const full = offers.filter((offer) => offer.regions_with_capacity_available.length === 0);
  const shown = showsAll ? [...ready, ...full] : ready;
  return (
    <Stack gap="sm">
      {ready.length === 0 && (
        <Text size="sm">
          There is no capacity for another machine now. Terminate a machine, or try again later.
        </Text>
      )}
      <Radio.Group
        aria-label="Type"
        value={choice.type}
        onChange={(type) => onChange({ type, ...noRegion })}
      >
        <div className="type-list">
          {shown.map((offer) => (
            <TypeCard key={offer.instance_type.name} offer={offer} />
          ))}
        </div>
      </Radio.Group>
      {full.length > 0 && (
        <Group>
          <Button variant="subtle" size="compact-sm" onClick={() => setShowsAll(!showsAll)}>
            {showsAll ? 'Hide' : 'Show'} {toCounted(full.length, 'type')} without capacity
          </Button>
        </Group>
      )}
    </Stack>
  );
}

function TypeCard({ offer }: { offer: Offer }) {
  const { name, description, price_cents_per_hour, specs } = offer.instance_type;
  const isFull = offer.regions_with_capacity_available.length === 0;
  const parts = [
    toCounted(specs.vcpus, 'vCPU'),
    `${specs.memory_gib} GiB memory`,
    `${specs.storage_gib} GiB disk`,
    specs.gpus === 0 ? 'no GPU' : toCounted(specs.gpus, 'GPU'),
  ];
  return (
    <Radio.Card value={name} disabled={isFull} className="type-card" aria-label={name}>
      <Group wrap="nowrap" gap="sm">
        <Radio.Indicator disabled={isFull} />
        <div className="grow">
          <Text size="sm" fw={500}>
            {description}
          </Text>
          <Text size="xs" c="dimmed">
            {parts.join(' · ')}
          </Text>
        </div>
        <div className="price">
          <Text size="sm">{toHourlyPrice(price_cents_per_hour)}</Text>
          <Text size="xs" c="dimmed">
            {isFull ? 'no capacity' : 'available'}
          </Text>
        </div>
      </Group>
    </Radio.Card>
  );
}
