// The saved conversations: search, open, rename and delete.

import { ActionIcon, Button, Group, Menu, Skeleton, Stack, Text, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import IconDots from '@tabler/icons-react/dist/esm/icons/IconDots.mjs';
import IconPlus from '@tabler/icons-react/dist/esm/icons/IconPlus.mjs';
import IconSearch from '@tabler/icons-react/dist/esm/icons/IconSearch.mjs';
import IconUsers from '@tabler/icons-react/dist/esm/icons/IconUsers.mjs';
import { useState } from 'react';
import { Link } from 'wouter';
import type { ConversationSummary } from '#accounts/conversations/schema.ts';
import { toFieldText } from '../browser/form-data.ts';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { TextField } from '../components/fields.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { toConversationPath, useConversationChanges, useConversations } from './library.ts';

interface SidebarProps {
  /** The id of the conversation on screen. */
  current: string | null;
  onNew: () => void;
}

type Asked = { kind: 'rename' | 'delete'; row: ConversationSummary };

export function Sidebar({ current, onNew }: SidebarProps) {
  const [typed, setTyped] = useState('');
  const [search] = useDebouncedValue(typed.trim(), 200);
  const list = useConversations(search);
  const [asked, setAsked] = useState<Asked | null>(null);
  const close = () => setAsked(null);
  return (
    <Stack gap="xs" className="conversations">
      <Button
        size="xs"
        onClick={onNew}
        leftSection={<IconPlus size={16} aria-hidden />}
        variant="light"
      >
        New chat
      </Button>
      <TextInput
        size="xs"
        aria-label="Search conversations"
        placeholder="Search conversations"
        leftSection={<IconSearch size={15} aria-hidden />}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        maxLength={100}
      />
      <ErrorNotice error={list.error} />
      {list.isPending && <Skeleton h={64} />}
      {list.data?.length === 0 && (
        <Text size="xs" c="dimmed">
          {search === '' ? 'No saved conversations yet.' : 'No conversation has this text.'}
        </Text>
      )}
      <ul>
        {list.data?.map((row) => (
          <Row key={row.id} row={row} isCurrent={row.id === current} onAsk={setAsked} />
        ))}
      </ul>
      {list.hasNextPage && (
        <Button
          variant="default"
          size="compact-xs"
          loading={list.isFetchingNextPage}
          onClick={() => list.fetchNextPage()}
        >
          Load more
        </Button>
      )}
      {asked && (
        <AskedDialog
          asked={asked}
          onClose={close}
          onDeleted={() => asked.row.id === current && onNew()}
        />
      )}
    </Stack>
  );
}

interface RowProps {
  row: ConversationSummary;
  isCurrent: boolean;
  onAsk: (asked: Asked) => void;
}

const Row = ({ row, isCurrent, onAsk }: RowProps) => (
  <li data-current={isCurrent || undefined}>
    <Link href={toConversationPath(row.id)} aria-current={isCurrent ? 'page' : undefined}>
      <span className="conversation-name">{row.name}</span>
      <Group gap={4} wrap="nowrap" className="muted">
        <RelativeTime at={row.updated_at} />
        {row.shared && (
          <>
            <IconUsers size={13} aria-hidden /> shared
          </>
        )}
      </Group>
    </Link>
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="sm" aria-label={`Actions of ${row.name}`}>
          <IconDots size={15} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => onAsk({ kind: 'rename', row })}>Rename</Menu.Item>
        <Menu.Item onClick={() => onAsk({ kind: 'delete', row })}>Delete</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  </li>
);

interface AskedDialogProps {
  asked: Asked;
  onClose: () => void;
  onDeleted: () => void;
}

function AskedDialog({ asked: { kind, row }, onClose, onDeleted }: AskedDialogProps) {
  const changes = useConversationChanges();
  if (kind === 'delete') {
    const confirm = async () => {
      await changes.remove(row.id);
      onDeleted();
    };
    return (
      <ConfirmDialog
        title="Delete conversation"
        action="Delete"
        onConfirm={confirm}
        onClose={onClose}
      >
        “{row.name}” is deleted from the server for good
        {row.shared ? ', and its link stops working.' : '.'}
      </ConfirmDialog>
    );
  }
  return (
    <FormDialog
      title="Rename conversation"
      action="Rename"
      onSubmit={async (form) => {
        await changes.rename(row.id, toFieldText(form, 'name'));
        onClose();
      }}
      onClose={onClose}
    >
      <TextField
        name="name"
        label="Name"
        defaultValue={row.name}
        maxLength={100}
        required
        data-autofocus
      />
    </FormDialog>
  );
}
