// A first and a last day, applied together.

import { Button, Group, TextInput } from '@mantine/core';
import { handleSubmit } from '../browser/form-data.ts';

interface DateRangeFormProps {
  /** A date such as `2026-11-15`. */
  from: string;
  to: string;
  onChoose: (days: { from: string; to: string }) => void;
}

export function DateRangeForm({ from, to, onChoose }: DateRangeFormProps) {
  const submit = handleSubmit((form) => {
    // Two dates in the wrong order mean the same range.
    const [first = from, last = to] = [String(form.get('from')), String(form.get('to'))].sort();
    onChoose({ from: first, to: last });
  });
  return (
    <form onSubmit={submit} key={`${from} ${to}`}>
      <Group align="flex-end" gap="sm">
        <TextInput label="From" name="from" type="date" required defaultValue={from} />
        <TextInput label="To" name="to" type="date" required defaultValue={to} />
        <Button type="submit" variant="default">
          Apply
        </Button>
      </Group>
    </form>
  );
}
