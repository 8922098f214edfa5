// The third step of a launch: the key that will be let in, which may be made here, a name, tags, and how many.

import {
  Button,
  Group,
  NumberInput,
  Select,
  Skeleton,
  Stack,
  Text,
  TextInput,
} from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { SshKey } from '#cloud/schema.ts';
import { get, type List, post } from '../api.ts';
import { download, toPemName } from '../browser/download.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import type { LaunchStepProps } from './launch-choice.ts';
import { maxCount } from './launch-many.ts';
import { TagsField } from './tags-field.tsx';

const queryKey = ['ssh-keys'];

export function AccessStep({ choice, onChange }: LaunchStepProps) {
  const keys = useQuery({ queryKey, queryFn: () => get<List<SshKey>>('/api/v1/ssh-keys') });
  if (keys.isPending) return <Skeleton h={160} aria-busy="true" />;
  return (
    <Stack>
      <ErrorNotice error={keys.error} onRetry={() => keys.refetch()} />
      <Group align="flex-start" gap="sm" grow preventGrowOverflow={false} wrap="nowrap">
        <TextInput
          label="Name of the machine"
          placeholder="Optional"
          value={choice.name}
          onChange={(event) => onChange({ name: event.currentTarget.value })}
          // Room for the number that each of several gets.
          maxLength={60}
          autoComplete="off"
        />
        <NumberInput
          label="How many"
          value={choice.count}
          onChange={(count) => onChange({ count: Number(count) })}
          min={1}
          max={maxCount}
          allowDecimal={false}
          clampBehavior="strict"
          maw={120}
        />
      </Group>
      <Select
        label="SSH key"
        description="Whoever holds its private half is let in as ubuntu."
        placeholder={keys.data?.data.length === 0 ? 'None yet: make one below' : 'Choose one'}
        data={[...new Set(keys.data?.data.map(({ name }) => name))]}
        value={choice.sshKey}
        onChange={(sshKey) => onChange({ sshKey })}
        allowDeselect={false}
      />
      <MakeKey onMade={(sshKey) => onChange({ sshKey })} />
      <TagsField tags={choice.tags} onChange={(tags) => onChange({ tags })} />
    </Stack>
  );
}

function MakeKey({ onMade }: { onMade: (name: string) => void }) {
  const client = useQueryClient();
  const [name, setName] = useState('');
  const make = useMutation({
    mutationFn: () => post<{ data: SshKey }>('/api/v1/ssh-keys', { name: name.trim() }),
    async onSuccess({ data }) {
      save(data);
      await client.invalidateQueries({ queryKey });
      onMade(data.name);
    },
  });
  const made = make.data?.data;
  if (made !== undefined) {
    return (
      <Group gap="sm">
        <Text size="sm">
          Keep {toPemName(made.name)}: the server can’t show the private half again.
        </Text>
        <Button variant="default" size="xs" onClick={() => save(made)}>
          Download it again
        </Button>
      </Group>
    );
  }
  return (
    <Stack gap="xs">
      <Group align="flex-end" gap="sm">
        <TextInput
          label="Or make a new key called"
          placeholder="my-laptop"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          maxLength={64}
          autoComplete="off"
        />
        <Button
          variant="default"
          onClick={() => make.mutate()}
          disabled={name.trim() === ''}
          loading={make.isPending}
        >
          Make and download
        </Button>
      </Group>
      <ErrorNotice error={make.error} />
    </Stack>
  );
}

const save = ({ name, private_key = '' }: SshKey) => download(toPemName(name), private_key);
