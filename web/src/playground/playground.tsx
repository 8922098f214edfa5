// The playground: chats with models in the browser. This file finds out which conversation the address names: a new
// one, a saved one, or one that another member has shared.

import { Anchor, Skeleton, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { type ComponentProps, useRef, useState } from 'react';
import { useLocation } from 'wouter';
import './playground.css';
import type { Conversation } from '#accounts/conversations/schema.ts';
import { ApiError } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Page } from '../components/page.tsx';
import { useMe } from '../current-user.ts';
import { ChatPage } from './chat-page.tsx';
import { type Chat, emptyChat } from './conversation.ts';
import { toConversationPath, useConversation } from './library.ts';
import { loadPreferences } from './preferences.ts';
import { SharedView } from './shared-view.tsx';

/** What is on screen. A new key shows it from the beginning. */
interface Opened {
  key: number;
  /** The id in the address. */
  id: string | null;
  /** The conversation to load; null for a chat that starts here, also after it has been saved. */
  load: string | null;
}

const toId = (location: string) => /^\/playground\/([0-9a-f]{32})$/.exec(location)?.[1] ?? null;

export default function Playground() {
  const { canUse } = useMe();
  const [location, navigate] = useLocation();
  const id = toId(location);
  const [opened, setOpened] = useState<Opened>({ key: 0, id, load: id });
  const created = useRef<{ id: string; key: number } | null>(null);
  const [start, setStart] = useState<Chat>(() => toStart(loadPreferences().model));
  // A chat that was saved for the first time gets its address and stays as it is.
  if (id !== opened.id) {
    const { current } = created;
    const isCreated = opened.id === null && id === current?.id && opened.key === current.key;
    setOpened(isCreated ? { ...opened, id } : { key: opened.key + 1, id, load: id });
  }
  const startNew = (chat: Chat) => {
    setStart(chat);
    if (id === null) setOpened(({ key }) => ({ key: key + 1, id, load: null }));
    else navigate('/playground');
  };
  const list = useDisclosure(true);
  const settings = useDisclosure(false);
  const chatProps = {
    list,
    settings,
    onNew: (chat: Chat) => startNew({ ...chat, turns: [] }),
    onCreated(createdId: string) {
      created.current = { id: createdId, key: opened.key };
      navigate(toConversationPath(createdId), { replace: true });
    },
  };
  if (opened.load !== null) {
    return (
      <Saved
        key={opened.key}
        id={opened.load}
        chatProps={chatProps}
        onCopy={({ content }) => startNew(content)}
      />
    );
  }
  if (canUse) return <ChatPage key={opened.key} initial={start} saved={null} {...chatProps} />;
  return (
    <Page title="Playground">
      <Text>Viewers can’t use models. An owner can change your role on the Team page.</Text>
    </Page>
  );
}

const toStart = (model: string | null): Chat => ({
  ...emptyChat,
  models: model === null ? [] : [model],
});

interface SavedProps {
  id: string;
  chatProps: Omit<ComponentProps<typeof ChatPage>, 'initial' | 'saved'>;
  onCopy: (conversation: Conversation) => void;
}

function Saved({ id, chatProps, onCopy }: SavedProps) {
  const { data, error, refetch } = useConversation(id);
  const { canUse } = useMe();
  if (error) {
    const isGone = error instanceof ApiError && error.status === 404;
    return (
      <Page title="Playground">
        {isGone ? (
          <Stack gap="xs" role="alert">
            <Text>This conversation does not exist, or is no longer shared with you.</Text>
            <Anchor href="#/playground" underline="always">
              Start a new chat
            </Anchor>
          </Stack>
        ) : (
          <ErrorNotice error={error} onRetry={() => refetch()} />
        )}
      </Page>
    );
  }
  if (data === undefined) return <Skeleton h={320} aria-busy="true" />;
  if (!data.own || !canUse) return <SharedView conversation={data} onCopy={() => onCopy(data)} />;
  return <ChatPage initial={data.content} saved={data} {...chatProps} />;
}
