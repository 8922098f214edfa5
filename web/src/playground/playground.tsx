// The playground: a chat with a model in the browser.

import { Button, Drawer, Group, Modal, Paper, Select, Skeleton, Text, Title } from '@mantine/core';
import { useDisclosure, useDocumentTitle } from '@mantine/hooks';
import { type RefObject, useEffect, useRef } from 'react';
import './playground.css';
import { useUrlState } from '../browser/url-state.ts';
import { toChatCode } from '../code-samples/chat.ts';
import { CodeSamples } from '../components/code-samples.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Page } from '../components/page.tsx';
import { useMe } from '../current-user.ts';
import { useStandIns } from '../models/backends.ts';
import { toDefaultModel, useModels } from '../models/use-models.ts';
import { Composer } from './composer.tsx';
import { toShownRequest } from './request.ts';
import { SettingsForm } from './settings-form.tsx';
import { ModelOption, StandInNotice } from './stand-in.tsx';
import { TurnView } from './turn-view.tsx';
import { useChat } from './use-chat.ts';

export default function Playground() {
  const { canUse } = useMe();
  if (canUse) return <Chat />;
  return (
    <Page title="Playground">
      <Text>Viewers can’t use models. An owner can change your role on the Team page.</Text>
    </Page>
  );
}

function Chat() {
  useDocumentTitle('Playground · Millrace');
  const { id } = useMe();
  const models = useModels();
  const chat = useChat(id, toDefaultModel(models.data?.data));
  const urlState = useUrlState('/playground');
  const linked = urlState.get('model');
  const isKnown = models.data?.data.some((one) => one.id === linked);
  const { update } = chat;
  useEffect(() => {
    if (linked !== null && isKnown) update({ model: linked });
  }, [linked, isKnown, update]);
  const { conversation, model, responding } = chat;
  const standIns = useStandIns();
  const [codeShown, code] = useDisclosure(false);
  const [settingsShown, settings] = useDisclosure(false);
  const form = <SettingsForm conversation={conversation} onChange={chat.update} />;

  return (
    <div className="playground">
      <Group justify="space-between" gap="sm">
        <Title order={1} size="h2">
          Playground
        </Title>
        <Group gap="xs">
          <Button variant="default" size="xs" onClick={code.open}>
            View code
          </Button>
          <Button variant="default" size="xs" onClick={settings.open} hiddenFrom="md">
            Settings
          </Button>
          <Button
            variant="default"
            size="xs"
            onClick={chat.clear}
            disabled={conversation.turns.length === 0}
          >
            Start over
          </Button>
        </Group>
      </Group>
      <div className="playground-columns">
        <section className="playground-chat" aria-label="Conversation">
          {models.isPending ? (
            <Skeleton h={36} maw={360} />
          ) : (
            <Select
              aria-label="Model"
              data={models.data?.data.map((one) => one.id) ?? []}
              renderOption={({ option }) => (
                <ModelOption id={option.value} isStandIn={standIns.has(option.value)} />
              )}
              value={model}
              onChange={(value) => {
                if (value === null) return;
                chat.update({ model: value });
                if (linked !== null) urlState.set({ model: value });
              }}
              searchable
              allowDeselect={false}
              nothingFoundMessage="No matching model"
              maw={360}
            />
          )}
          <ErrorNotice error={models.error} />
          {linked !== null && isKnown === false && (
            <Text size="sm" role="alert" className="breakable">
              The link names the model “{linked}”, which this server does not have.
            </Text>
          )}
          {standIns.has(model) && <StandInNotice model={model} />}
          <Turns chat={chat} />
          {chat.problem && (
            <Text size="sm" c="var(--mantine-color-error)" role="status">
              {chat.problem}
            </Text>
          )}
          <Composer
            responding={responding}
            blocked={chat.problem !== null}
            onSend={chat.send}
            onStop={chat.stop}
          />
        </section>
        <Paper component="aside" withBorder p="md" visibleFrom="md" aria-label="Settings">
          {form}
        </Paper>
      </div>
      <Drawer opened={settingsShown} onClose={settings.close} title="Settings" position="right">
        {form}
      </Drawer>
      <Modal opened={codeShown} onClose={code.close} title="Code for this chat" size="xl">
        <CodeSamples samples={toChatCode(location.origin, toShownRequest(conversation, model))} />
      </Modal>
    </div>
  );
}

function Turns({ chat }: { chat: ReturnType<typeof useChat> }) {
  const { conversation, responding } = chat;
  const { turns } = conversation;
  const list = useRef<HTMLDivElement>(null);
  const last = turns.at(-1);
  useAutoScroll(list, `${turns.length}:${last?.text.length}:${last?.outcome === null}`);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, which the keyboard must reach
    <div ref={list} className="turns" tabIndex={0} role="log" aria-busy={responding}>
      {turns.length === 0 && (
        <Text c="dimmed" className="turns-empty">
          No messages yet. Your messages are sent to the selected model. The conversation is stored
          only in this browser.
        </Text>
      )}
      {turns.map((turn) => (
        <TurnView
          key={turn.id}
          turn={turn}
          isLast={turn === last}
          responding={responding}
          onEdit={chat.edit}
          onRegenerate={chat.regenerate}
          onResults={chat.sendResults}
        />
      ))}
      {last && last.role !== 'assistant' && !responding && (
        <Button variant="default" size="xs" onClick={chat.regenerate}>
          Get a response
        </Button>
      )}
    </div>
  );
}

/** Keeps the newest text in view unless the user has scrolled up. */
function useAutoScroll(list: RefObject<HTMLDivElement | null>, change: string): void {
  const atEnd = useRef(true);
  useEffect(() => {
    const element = list.current;
    if (element === null) return;
    const onScroll = () => {
      atEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 64;
    };
    element.addEventListener('scroll', onScroll, { passive: true });
    return () => element.removeEventListener('scroll', onScroll);
  }, [list]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls when the content changes
  useEffect(() => {
    const element = list.current;
    if (element !== null && atEnd.current) element.scrollTop = element.scrollHeight;
  }, [list, change]);
}
