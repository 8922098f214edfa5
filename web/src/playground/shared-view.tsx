// A conversation that another member has shared: it can be read, and continued as a copy.

import { Button, Group, Text, Title } from '@mantine/core';
import { useDocumentTitle } from '@mantine/hooks';
import type { Conversation } from '#accounts/conversations/schema.ts';
import { useMe } from '../current-user.ts';
import { Turns } from './turns.tsx';

interface SharedViewProps {
  conversation: Conversation;
  onCopy: () => void;
}

export function SharedView({ conversation, onCopy }: SharedViewProps) {
  const { name, owner_email, content } = conversation;
  const { canUse } = useMe();
  useDocumentTitle(`${name} · Millrace`);
  return (
    <div className="playground">
      <Group justify="space-between" gap="sm">
        <div>
          <Title order={1} size="h3" className="breakable">
            {name}
          </Title>
          <Text size="sm" c="dimmed" className="breakable">
            Shared by {owner_email} · {content.models.join(' and ')} · read-only
          </Text>
        </div>
        {canUse && <Button onClick={onCopy}>Continue as my own copy</Button>}
      </Group>
      {content.system.trim() !== '' && (
        <details className="reasoning">
          <summary>System prompt</summary>
          <div className="reasoning-text turn-text">{content.system}</div>
        </details>
      )}
      <Turns
        turns={content.turns}
        responding={false}
        empty={<Text c="dimmed">This conversation is empty.</Text>}
      />
    </div>
  );
}
