// What few backends need: headers of their own, other patience, and whether they go on with
// what another began.

import { Select, SimpleGrid, Stack, Textarea, TextInput } from '@mantine/core';
import type { NewBackend } from '#inference/backends/schema.ts';

const timeouts = [
  { name: 'connect_ms', label: 'Connect', placeholder: '2' },
  { name: 'first_byte_ms', label: 'First word', placeholder: '120' },
  { name: 'idle_ms', label: 'Longest pause', placeholder: '60' },
] as const;

export const MoreFields = () => (
  <details>
    <summary>More: headers, timeouts, streams that break off</summary>
    <Stack gap="sm" mt="sm">
      <Textarea
        label="Headers"
        description="Sent with every request to it, one on a line."
        name="headers"
        placeholder="x-team: vision"
        autosize
        minRows={2}
        maxRows={8}
        autoComplete="off"
      />
      <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm">
        {timeouts.map(({ name, label, placeholder }) => (
          <TextInput
            key={name}
            label={`${label}, seconds`}
            name={name}
            placeholder={placeholder}
            type="number"
            min={0.001}
            max={86_400}
            step="any"
            autoComplete="off"
          />
        ))}
      </SimpleGrid>
      <Select
        label="Can finish an answer that broke off elsewhere"
        description="It is given the beginning, and has to go on from there."
        name="continue_streams"
        placeholder="As its kind of server can"
        data={[
          { value: 'true', label: 'Yes' },
          { value: 'false', label: 'No' },
        ]}
        clearable
        clearButtonProps={{ 'aria-label': 'As its kind of server can' }}
      />
    </Stack>
  </details>
);

/** What was left as it is is left out. */
export function parseMore(
  form: FormData,
): Pick<NewBackend, 'headers' | 'timeouts' | 'continue_streams'> {
  const text = (name: string) => String(form.get(name) ?? '').trim();
  const lines = text('headers').split('\n').map(parseHeader);
  const headers = lines.filter(([name]) => name !== '');
  const given = timeouts.filter(({ name }) => text(name) !== '');
  const inMs = given.map(({ name }) => [name, Math.round(Number(text(name)) * 1000)]);
  const goesOn = text('continue_streams');
  return {
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(headers) }),
    ...(inMs.length === 0 ? {} : { timeouts: Object.fromEntries(inMs) }),
    ...(goesOn === '' ? {} : { continue_streams: goesOn === 'true' }),
  };
}

/** Without a colon all of it is the name, and the server says what is wrong with it. */
function parseHeader(line: string): [string, string] {
  const [name = '', ...rest] = line.split(':');
  return [name.trim(), rest.join(':').trim()];
}
