// The part of a launch about names and access: name, count, tags and the SSH key, which can be generated here. The only key, or
// the one of the last launch, is selected.

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
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { SshKey } from '#cloud/schema.ts';
import { post } from '../api.ts';
import { download, toPemName } from '../browser/download.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { findFieldError } from '../field-errors.ts';
import { sshKeysKey, useSshKeys } from '../queries.ts';
import { KeepKey } from '../ssh-keys/keep-key.tsx';
import type { FieldErrors, LaunchPartProps } from './launch-choice.ts';
import { maxCount } from './launch-many.ts';
import { readLastKey } from './launch-memory.ts';
import { TagsField } from './tags-field.tsx';

interface LaunchAccessProps extends LaunchPartProps {
  errors: FieldErrors;
}

export function LaunchAccess({ choice, onChange, errors }: LaunchAccessProps) {
  const keys = useSshKeys();
  const names = [...new Set(keys.data?.data.map(({ name }) => name))];
  const lastKey = readLastKey();
  const likely = names.length === 1 ? names[0] : names.find((name) => name === lastKey);
  const { sshKey } = choice;
  useEffect(() => {
    if (sshKey === null && likely !== undefined) onChange({ sshKey: likely });
  }, [sshKey, likely, onChange]);
  if (keys.isPending) return <Skeleton h={160} aria-busy="true" />;
  return (
    <Stack>
      <ErrorNotice error={keys.error} onRetry={() => keys.refetch()} />
      <Group align="flex-start" gap="sm" grow preventGrowOverflow={false} wrap="nowrap">
        <TextInput
          label="Machine name"
          placeholder="Optional"
          value={choice.name}
          onChange={(event) => onChange({ name: event.currentTarget.value })}
          // Leaves room for the number that is added if there are several machines.
          maxLength={60}
          error={errors.name}
        />
        <NumberInput
          label="Count"
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
        description="Anyone with the private key can log in as ubuntu."
        placeholder={names.length === 0 ? 'None yet: generate one below' : 'Select a key'}
        data={names}
        value={sshKey}
        onChange={(sshKey) => onChange({ sshKey })}
        allowDeselect={false}
        error={errors.ssh_key_names}
      />
      <GenerateKey onGenerated={(sshKey) => onChange({ sshKey })} />
      <TagsField tags={choice.tags} onChange={(tags) => onChange({ tags })} error={errors.tags} />
    </Stack>
  );
}

function GenerateKey({ onGenerated }: { onGenerated: (name: string) => void }) {
  const client = useQueryClient();
  const [name, setName] = useState('');
  const generate = useMutation({
    mutationFn: () => post<{ data: SshKey }>('/api/v1/ssh-keys', { name: name.trim() }),
    async onSuccess({ data }) {
      save(data);
      await client.invalidateQueries({ queryKey: sshKeysKey });
      onGenerated(data.name);
    },
  });
  const generated = generate.data?.data;
  const about = findFieldError(generate.error);
  if (generated !== undefined) {
    return (
      <Stack gap="xs">
        <Group gap="sm">
          <Text size="sm">
            Keep {toPemName(generated.name)}. The server can’t show the private key again.
          </Text>
          <Button variant="default" size="xs" onClick={() => save(generated)}>
            Download again
          </Button>
        </Group>
        <KeepKey name={generated.name} />
      </Stack>
    );
  }
  return (
    <Stack gap="xs">
      <Group align={about === undefined ? 'flex-end' : 'center'} gap="sm">
        <TextInput
          label="Or generate a new key named"
          placeholder="my-laptop"
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          maxLength={64}
          error={about?.text}
        />
        <Button
          variant="default"
          onClick={() => generate.mutate()}
          disabled={name.trim() === ''}
          loading={generate.isPending}
        >
          Generate and download
        </Button>
      </Group>
      {about === undefined && <ErrorNotice error={generate.error} />}
    </Stack>
  );
}

const save = ({ name, private_key = '' }: SshKey) => download(toPemName(name), private_key);
