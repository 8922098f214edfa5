// The fields for limits, the same for new keys, existing keys and the whole account.

import { Fieldset, SimpleGrid } from '@mantine/core';
import type { Limits } from '#accounts/schema.ts';
import { TextField } from '../components/fields.tsx';
import { limitFields } from './limits.ts';

/** `limits` is undefined for a new key. */
export const LimitsFields = ({ limits }: { limits?: Limits }) => (
  <Fieldset legend="Limits" p="md">
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
      {limitFields.map(({ name, label }) => (
        <TextField
          key={name}
          name={name}
          label={label}
          placeholder={limits ? 'No limit' : 'Server default'}
          type="number"
          inputMode="decimal"
          min={name === 'monthly_budget' ? 0.000000001 : 1}
          step={name === 'monthly_budget' ? 'any' : 1}
          defaultValue={limits?.[name] ?? ''}
          leftSection={name === 'monthly_budget' ? '$' : undefined}
        />
      ))}
    </SimpleGrid>
  </Fieldset>
);
