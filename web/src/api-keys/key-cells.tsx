// Facts about an API key, the same in the list and on the key's own page.

import { Badge, Group, Text } from '@mantine/core';
import type { ApiKey } from '#accounts/schema.ts';
import { RelativeTime } from '../components/relative-time.tsx';
import { scopeName } from '../current-user.ts';

export const toCreator = ({ created_by: by }: ApiKey) =>
  by === null ? 'the server' : (by.email ?? 'a former member');

export const Scopes = ({ scopes }: Pick<ApiKey, 'scopes'>) => (
  <Group gap={6}>
    {scopes.map((scope) => (
      <Badge key={scope} variant="default" tt="none">
        {scopeName[scope]}
      </Badge>
    ))}
  </Group>
);

export function OptionalTime({ at }: { at: string | null }) {
  if (at !== null) return <RelativeTime at={at} />;
  return (
    <Text size="sm" c="dimmed">
      Never
    </Text>
  );
}

export function Expiry({ at }: { at: string | null }) {
  if (at === null || Date.parse(at) > Date.now()) return <OptionalTime at={at} />;
  return (
    <Text size="sm" c="var(--mantine-color-error)">
      Expired
    </Text>
  );
}
