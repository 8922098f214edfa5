// The part of a launch that says what: cards of machine types by GPU family, with filters. A type that can't be launched
// now says why.

import {
  Checkbox,
  Group,
  NumberInput,
  Radio,
  SegmentedControl,
  Skeleton,
  Text,
  Title,
  VisuallyHidden,
} from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { InstanceTypes } from '#cloud/schema.ts';
import { toCounted, toHourlyPrice } from '#lib/text/format.ts';
import { get } from '../api.ts';
import { instanceTypesKey } from '../queries.ts';
import { type LaunchPartProps, noRegion } from './launch-choice.ts';

type Offer = InstanceTypes[string];

const kinds = [
  { value: 'all', label: 'All' },
  { value: 'gpu', label: 'GPU' },
  { value: 'cpu', label: 'CPU' },
];

interface TypeFilters {
  kind: string;
  availableOnly: boolean;
  maxDollars: number | null;
}

export function LaunchTypes({ types, choice, onChange }: LaunchPartProps) {
  const [filters, setFilters] = useState<TypeFilters>({
    kind: 'all',
    availableOnly: true,
    maxDollars: null,
  });
  const obstacles = useQuery({
    queryKey: [...instanceTypesKey, 'obstacles'],
    queryFn: () => get<{ data: Record<string, string> }>('/dashboard/api/launch-obstacles'),
  });
  if (types === undefined) return <Skeleton h={220} aria-busy="true" />;
  const offers = Object.values(types);
  const shown = offers.filter((offer) => matches(offer, filters));
  const families = Map.groupBy(shown, toFamily);
  return (
    <div className="stack">
      <Filters filters={filters} onChange={(change) => setFilters({ ...filters, ...change })} />
      {shown.length === 0 && (
        <Text size="sm" role="status">
          {offers.some(isAvailable)
            ? `No type matches these filters. ${toCounted(offers.length, 'type')} without them.`
            : 'There is no capacity for another machine now. Terminate a machine, or try again later.'}
        </Text>
      )}
      <Radio.Group
        // The group itself takes its name from a label only.
        label={<VisuallyHidden>Type</VisuallyHidden>}
        value={choice.type}
        onChange={(type) => onChange({ type, ...noRegion })}
      >
        {[...families].map(([family, members]) => (
          <section key={family} aria-label={family} className="type-family">
            <Title order={3} size="h6" mb="xs">
              {family}
            </Title>
            <div className="type-list">
              {members.map((offer) => (
                <TypeCard
                  key={offer.instance_type.name}
                  offer={offer}
                  obstacle={obstacles.data?.data[offer.instance_type.name]}
                />
              ))}
            </div>
          </section>
        ))}
      </Radio.Group>
    </div>
  );
}

interface FiltersProps {
  filters: TypeFilters;
  onChange: (change: Partial<TypeFilters>) => void;
}

const Filters = ({ filters, onChange }: FiltersProps) => (
  <Group gap="md" align="flex-end">
    <SegmentedControl
      aria-label="Kind of machine"
      size="sm"
      data={kinds}
      value={filters.kind}
      onChange={(kind) => onChange({ kind })}
    />
    <NumberInput
      label="Up to $ per hour"
      placeholder="Any"
      size="sm"
      w={140}
      min={0}
      value={filters.maxDollars ?? ''}
      onChange={(value) => onChange({ maxDollars: value === '' ? null : Number(value) })}
    />
    <Checkbox
      label="Available now"
      mb={8}
      checked={filters.availableOnly}
      onChange={(event) => onChange({ availableOnly: event.currentTarget.checked })}
    />
  </Group>
);

const isAvailable = (offer: Offer) => offer.regions_with_capacity_available.length > 0;

function matches(offer: Offer, { kind, availableOnly, maxDollars }: TypeFilters): boolean {
  const { specs, price_cents_per_hour } = offer.instance_type;
  if (kind !== 'all' && (kind === 'gpu') !== specs.gpus > 0) return false;
  if (maxDollars !== null && price_cents_per_hour > maxDollars * 100) return false;
  return !availableOnly || isAvailable(offer);
}

/** E.g. `H100 (80 GB SXM5)`, without the maker, so that sizes of one GPU stand together. */
function toFamily({ instance_type: { specs, gpu_description } }: Offer): string {
  return specs.gpus === 0 ? 'CPU only' : gpu_description;
}

function TypeCard({ offer, obstacle }: { offer: Offer; obstacle: string | undefined }) {
  const { name, description, price_cents_per_hour, specs } = offer.instance_type;
  const isFull = !isAvailable(offer);
  const parts = [
    toCounted(specs.vcpus, 'vCPU'),
    `${specs.memory_gib} GiB memory`,
    `${specs.storage_gib} GiB disk`,
  ];
  return (
    <Radio.Card value={name} disabled={isFull} className="type-card" aria-label={name}>
      <Group wrap="nowrap" gap="sm" align="flex-start">
        <Radio.Indicator disabled={isFull} mt={2} />
        <div className="grow">
          <Group justify="space-between" wrap="nowrap" align="flex-start" gap="xs">
            <Text size="sm" fw={600}>
              {specs.gpus === 0 ? description : toCounted(specs.gpus, 'GPU')}
            </Text>
            <Text size="sm" className="price">
              {toHourlyPrice(price_cents_per_hour)}
            </Text>
          </Group>
          <Text size="xs" c="dimmed">
            {parts.join(' · ')}
          </Text>
          {isFull && (
            <Text size="xs" mt={4}>
              {obstacle ?? 'No capacity now.'}
            </Text>
          )}
        </div>
      </Group>
    </Radio.Card>
  );
}
