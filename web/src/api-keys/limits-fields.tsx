// The fields for limits, the same for a new key, an old one and the whole account.

import { Fieldset, SimpleGrid, TextInput } from '@mantine/core';
import { type Limits, limitFields } from './limits.ts';

export const LimitsFields = ({ limits }: { limits?: Limits }) => (
  <Fieldset legend="Limits" p="md">
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
      {limitFields.map(({ name, label }) => (
        <TextInput
          key={name}
          name={name}
          label={label}
          placeholder="No limit"
          type="number"
          inputMode="decimal"
          min={name === 'monthly_budget' ? 0.01 : 1}
          step={name === 'monthly_budget' ? 'any' : 1}
          defaultValue={limits?.[name] ?? ''}
          leftSection={name === 'monthly_budget' ? '$' : undefined}
          autoComplete="off"
        />
      ))}
    </SimpleGrid>
  </Fieldset>
);
