// Settings that few backends need: headers, timeouts, and whether they can continue a response that another
// backend began.

import { SimpleGrid } from '@mantine/core';
import type { NewBackend } from '#inference/backends/schema.ts';
import { toFieldText } from '../browser/form-data.ts';
import { Advanced } from '../components/advanced.tsx';
import { SelectField, TextareaField, TextField } from '../components/fields.tsx';
import { FieldProblem } from '../field-errors.ts';

const timeouts = [
  { name: 'connect_ms', label: 'Connect timeout', placeholder: '2' },
  { name: 'first_byte_ms', label: 'First byte timeout', placeholder: '120' },
  { name: 'idle_ms', label: 'Idle timeout', placeholder: '60' },
] as const;

export const AdvancedFields = () => (
  <Advanced about="headers, timeouts, interrupted streams">
    <TextareaField
      label="Headers"
      description="Sent with every request to this backend, one per line."
      name="headers"
      placeholder="x-team: vision"
    />
    <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
      {timeouts.map(({ name, label, placeholder }) => (
        <TextField
          key={name}
          label={`${label} (s)`}
          name={name}
          placeholder={placeholder}
          type="number"
          min={0.001}
          max={86_400}
          step="any"
        />
      ))}
    </SimpleGrid>
    <SelectField
      label="Can continue interrupted responses"
      description="The backend gets the beginning of the response and continues from there."
      name="continue_streams"
      placeholder="Default for the server type"
      data={[
        { value: 'true', label: 'Yes' },
        { value: 'false', label: 'No' },
      ]}
      clearable
      clearButtonProps={{ 'aria-label': 'Default for the server type' }}
    />
  </Advanced>
);

/** The fields of the form; empty ones are omitted. */
export function parseAdvancedFields(
  form: FormData,
): Pick<NewBackend, 'headers' | 'timeouts' | 'continue_streams'> {
  const text = (name: string) => toFieldText(form, name);
  const lines = text('headers').split('\n').map(parseHeader);
  const headers = lines.filter(([name]) => name !== '');
  const given = timeouts.filter(({ name }) => text(name) !== '');
  const inMs = given.map(({ name }) => [name, Math.round(Number(text(name)) * 1000)]);
  const canContinue = text('continue_streams');
  return {
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }),
    ...(inMs.length === 0 ? {} : { timeouts: Object.fromEntries(inMs) }),
    ...(canContinue === '' ? {} : { continue_streams: canContinue === 'true' }),
  };
}

/** A line without a colon is all name. Throws an error for the field if it can't be one. */
function parseHeader(line: string): [string, string] {
  const [text = '', ...rest] = line.split(':');
  const name = text.trim();
  if (!/^[A-Za-z0-9-]{0,100}$/.test(name)) {
    throw new FieldProblem(
      'headers',
      `“${name}” is not the name of a header. Use letters, digits and hyphens.`,
    );
  }
  return [name, rest.join(':').trim()];
}
