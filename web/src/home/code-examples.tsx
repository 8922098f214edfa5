// The same as the page's three things from a program: a chat or a launch, with this server's address and,
// once it was asked for, a real key. The key lives as long as the page.

import { Alert, Anchor, Button, Group, SegmentedControl, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import type { ApiKey } from '#accounts/schema.ts';
import type { InstanceTypes, SshKey } from '#cloud/schema.ts';
import { get, type List, post } from '../api.ts';
import { sampleQuestion, toChatCode } from '../code-samples/chat.ts';
import { toLaunchCode } from '../code-samples/launch.ts';
import { CodeSamples } from '../components/code-samples.tsx';
import { SecretField } from '../components/copy-button.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { useMe } from '../current-user.ts';
import { toDefaultModel, useModels } from '../models/use-models.ts';

export function CodeExamples() {
  const { canUse } = useMe();
  const client = useQueryClient();
  const models = useModels();
  const [what, setWhat] = useState('chat');
  const launch = useLaunchExample();
  const make = useMutation({
    mutationFn: () => post<ApiKey>('/dashboard/api/api-keys', { label: 'from the home page' }),
    onSuccess: () => client.invalidateQueries({ queryKey: ['api-keys'] }),
  });
  const key = make.data?.key ?? null;
  const address = window.location.origin;
  const samples =
    what === 'chat'
      ? toChatCode(
          address,
          {
            model: toDefaultModel(models.data?.data),
            messages: [{ role: 'user', content: sampleQuestion }],
          },
          key,
        )
      : toLaunchCode(address, launch, key);
  return (
    <Stack gap="sm" mt="md">
      <Title order={2} size="h4">
        From your own program
      </Title>
      <Text c="dimmed" size="sm">
        Any OpenAI library works with this address and one of your{' '}
        <Anchor component={Link} href="/api-keys" underline="always">
          API keys
        </Anchor>
        ; machines have an API of their own, for which the same keys are good.
      </Text>
      <Group justify="space-between">
        <SegmentedControl
          aria-label="What the code does"
          data={[
            { value: 'chat', label: 'Chat' },
            { value: 'launch', label: 'Launch a machine' },
          ]}
          value={what}
          onChange={setWhat}
        />
        {canUse && key === null && (
          <Button variant="default" onClick={() => make.mutate()} loading={make.isPending}>
            Make a key and put it in
          </Button>
        )}
      </Group>
      <ErrorNotice error={make.error} />
      {key !== null && (
        <Alert variant="default" role="status">
          <SecretField label="Your new key, shown this once" value={key} />
        </Alert>
      )}
      <CodeSamples samples={samples} />
      {what === 'launch' && (
        <Text size="sm" c="dimmed">
          The machine lets in the{' '}
          <Anchor component={Link} href="/ssh-keys" underline="always">
            SSH key
          </Anchor>{' '}
          that is named; it has to be there before.
        </Text>
      )}
    </Stack>
  );
}

/** Something that this server has room for, let in by a key that it knows. */
function useLaunchExample() {
  const types = useQuery({
    queryKey: ['instance-types'],
    queryFn: () => get<{ data: InstanceTypes }>('/api/v1/instance-types'),
  });
  const keys = useQuery({
    queryKey: ['ssh-keys'],
    queryFn: () => get<List<SshKey>>('/api/v1/ssh-keys'),
  });
  const offers = Object.values(types.data?.data ?? {});
  const offer = offers.find((one) => one.regions_with_capacity_available.length > 0);
  return {
    region_name: offer?.regions_with_capacity_available[0]?.name ?? 'us-west-1',
    instance_type_name: offer?.instance_type.name ?? 'cpu_1x_general',
    ssh_key_names: [keys.data?.data[0]?.name ?? 'my-laptop'],
  };
}
