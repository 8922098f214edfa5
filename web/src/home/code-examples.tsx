// Code for a chat or a launch with this server's address. It holds a real API key once the user creates one;
// the key is kept only as long as the page is open.

import { Alert, Anchor, Button, Group, SegmentedControl, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { ApiKey } from '#accounts/schema.ts';
import { post } from '../api.ts';
import { sampleQuestion, toChatCode } from '../code-samples/chat.ts';
import { toLaunchCode } from '../code-samples/launch.ts';
import { CodeSamples } from '../components/code-samples.tsx';
import { SecretField } from '../components/copy-button.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Section } from '../components/section.tsx';
import { useMe } from '../current-user.ts';
import { toDefaultModel, useChatModels } from '../models/use-models.ts';
import { apiKeysKey, useInstanceTypes, useSshKeys } from '../queries.ts';

export function CodeExamples() {
  const { canUse } = useMe();
  const client = useQueryClient();
  const [example, setExample] = useState('chat');
  const create = useMutation({
    mutationFn: () => post<ApiKey>('/dashboard/api/api-keys', { label: 'home page' }),
    onSuccess: () => client.invalidateQueries({ queryKey: apiKeysKey }),
  });
  const key = create.data?.key ?? null;
  const samples = useSamples(key);
  return (
    <Section title="Use the API">
      <Text c="dimmed" size="sm">
        Any OpenAI library works with this address and one of your{' '}
        <Anchor component={Link} href="/api-keys" underline="always">
          API keys
        </Anchor>
        . Machines have their own API, which accepts the same keys.
      </Text>
      <Group justify="space-between">
        <SegmentedControl
          aria-label="Example"
          data={[
            { value: 'chat', label: 'Chat' },
            { value: 'launch', label: 'Launch a machine' },
          ]}
          value={example}
          onChange={setExample}
        />
        {canUse && key === null && (
          <Button variant="default" onClick={() => create.mutate()} loading={create.isPending}>
            Create API key
          </Button>
        )}
      </Group>
      <ErrorNotice error={create.error} />
      {key !== null && (
        <Alert variant="default" role="status">
          <SecretField label="Your new API key (shown only once)" value={key} />
        </Alert>
      )}
      <CodeSamples samples={example === 'chat' ? samples.chat : samples.launch} />
      {example === 'launch' && (
        <Text size="sm" c="dimmed">
          The code names an{' '}
          <Anchor component={Link} href="/ssh-keys" underline="always">
            SSH key
          </Anchor>{' '}
          that can log in to the machine. Add the key before you run the code.
        </Text>
      )}
    </Section>
  );
}

/** The examples, with a type that has capacity and an SSH key of the account where there are any. */
function useSamples(key: string | null) {
  const chats = useChatModels();
  const types = useInstanceTypes();
  const sshKeys = useSshKeys();
  const offers = Object.values(types.data?.data ?? {});
  const offer = offers.find((one) => one.regions_with_capacity_available.length > 0);
  const address = window.location.origin;
  const chat = {
    model: toDefaultModel(chats.ids),
    messages: [{ role: 'user' as const, content: sampleQuestion }],
  };
  const launch = {
    region_name: offer?.regions_with_capacity_available[0]?.name ?? 'us-west-1',
    instance_type_name: offer?.instance_type.name ?? 'cpu_1x_general',
    ssh_key_names: [sshKeys.data?.data[0]?.name ?? 'my-laptop'],
  };
  return { chat: toChatCode(address, chat, key), launch: toLaunchCode(address, launch, key) };
}
