// A first and a last day, taken together once both are chosen.

import { Button, Group, TextInput } from '@mantine/core';
import type { FormEvent } from 'react';

interface DateRangeFormProps {
  /** As `2026-11-15`. */
  from: string;
  to: string;
  onChoose: (days: { from: string; to: string }) => void;
}

export function DateRangeForm({ from, to, onChoose }: DateRangeFormProps) {
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    // In the wrong order they still mean one span.
    const [first = from, last = to] = [String(form.get('from')), String(form.get('to'))].sort();
    onChoose({ from: first, to: last });
  };
  return (
    <form onSubmit={submit} key={`${from} ${to}`}>
      <Group align="flex-end" gap="sm">
        {[
          { name: 'from', label: 'From', value: from },
          { name: 'to', label: 'To', value: to },
        ].map(({ name, label, value }) => (
          <TextInput
            key={name}
            label={label}
            name={name}
            type="date"
            required
            withAsterisk={false}
            defaultValue={value}
          />
        ))}
        <Button type="submit" variant="default">
          Show
        </Button>
      </Group>
    </form>
  );
}
