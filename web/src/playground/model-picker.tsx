// The field for a model. Its options show what a model costs, and which ones only a stand-in answers for.

import { Group, Select, Skeleton, Text } from '@mantine/core';
import { toMoney } from '#lib/text/format.ts';
import { StatusBadge } from '../components/status-badge.tsx';
import { standInLabel } from '../models/backends.ts';
import type { ModelFacts } from './model-facts.ts';

interface ModelPickerProps {
  label: string;
  facts: ModelFacts;
  value: string;
  onChange: (model: string) => void;
}

export function ModelPicker({ label, facts, value, onChange }: ModelPickerProps) {
  if (facts.ids === null) return <Skeleton h={36} w={280} />;
  return (
    <Select
      aria-label={label}
      data={facts.ids}
      renderOption={({ option }) => <ModelOption id={option.value} facts={facts} />}
      value={value}
      onChange={(model) => model !== null && onChange(model)}
      searchable
      allowDeselect={false}
      nothingFoundMessage="No matching model"
      comboboxProps={{ width: 360, position: 'bottom-start' }}
      maxDropdownHeight={420}
      className="model-picker"
    />
  );
}

const ModelOption = ({ id, facts }: { id: string; facts: ModelFacts }) => {
  const price = facts.priceOf(id);
  const isStandIn = facts.isStandIn(id);
  return (
    <div>
      <Group gap="xs">
        <span className="breakable">{id}</span>
        {isStandIn && <StatusBadge tone="warning">{standInLabel}</StatusBadge>}
      </Group>
      <Text size="xs" c="dimmed">
        {[isStandIn ? 'Free' : price && toPrice(price), facts.takesImages(id) && 'takes images']
          .filter(Boolean)
          .join(' · ')}
      </Text>
    </div>
  );
};

const toPrice = ({ input, output }: { input: number; output: number }) =>
  input === 0 && output === 0
    ? 'Free'
    : `${toMoney(input)} in, ${toMoney(output)} out per million tokens`;
