// The page of a chat that can be continued: the saved conversations, the chat, and its settings.

import { Drawer, Modal, Paper, Text } from '@mantine/core';
import { useDisclosure, useDocumentTitle, useMediaQuery } from '@mantine/hooks';
import { type KeyboardEvent, useEffect, useState } from 'react';
import type { ConversationSummary } from '#accounts/conversations/schema.ts';
import { useUrlState } from '../browser/url-state.ts';
import { toChatCode } from '../code-samples/chat.ts';
import { CodeSamples } from '../components/code-samples.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Composer } from './composer.tsx';
import { type Chat, inLane } from './conversation.ts';
import { useSaving } from './library.ts';
import { type ModelFacts, useModelFacts } from './model-facts.ts';
import { loadPreferences, storePreferences } from './preferences.ts';
import { toShownRequest } from './request.ts';
import { SettingsForm } from './settings-form.tsx';
import { ShareDialog } from './share-dialog.tsx';
import { Sidebar } from './sidebar.tsx';
import { StandInNotice } from './stand-in.tsx';
import { Toolbar } from './toolbar.tsx';
import { EmptyTurns, Turns } from './turns.tsx';
import { useChat } from './use-chat.ts';

interface ChatPageProps {
  initial: Chat;
  /** Null for a chat that was not saved yet. */
  saved: ConversationSummary | null;
  /** Whether the two panels are open, which outlives the conversation on screen. */
  list: ReturnType<typeof useDisclosure>;
  settings: ReturnType<typeof useDisclosure>;
  onNew: (chat: Chat) => void;
  onCreated: (id: string) => void;
}

export function ChatPage(props: ChatPageProps) {
  const facts = useModelFacts();
  const saving = useSaving(props.saved, props.onCreated);
  const [temporary, setTemporary] = useState(() => loadPreferences().temporary);
  const isTemporary = temporary && saving.saved === null;
  const chat = useChat(props.initial, {
    defaultModel: facts.defaultModel,
    toCost: facts.toCost,
    onTurn: (content, models) => isTemporary || saving.save(content, models),
  });
  const { models, responding } = chat;
  const name = saving.saved?.name ?? 'Playground';
  useDocumentTitle(`${name} · Millrace`);
  const unknown = useLinkedModel(facts, (model) => chat.update({ models: [model] }));
  const [dialog, setDialog] = useState<'code' | 'share' | null>(null);
  const [editing, setEditing] = useState<string | null>(null);
  const isWide = useMediaQuery('(min-width: 75em)', undefined, { getInitialValueInEffect: false });
  const [listShown, list] = props.list;
  const [drawerShown, drawer] = useDisclosure(false);
  const [settingsShown, settings] = props.settings;
  const form = <SettingsForm chat={chat.chat} onChange={chat.update} />;
  const startNew = () => props.onNew({ ...chat.chat, models });
  const sidebar = <Sidebar current={saving.saved?.id ?? null} onNew={startNew} />;
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && responding) chat.stop();
  };
  const select = (next: string[]) => {
    chat.update({ models: next });
    storePreferences({ model: next[0] ?? null, temporary });
  };
  const editLast = () => {
    const last = chat.chat.turns.findLast(({ role }) => role === 'user');
    if (last) setEditing(last.id);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Esc stops the response wherever the focus is
    <div className="playground" onKeyDown={onKeyDown}>
      <Toolbar
        name={name}
        chat={chat}
        facts={facts}
        saving={saving}
        temporary={isTemporary}
        onTemporary={(value) => {
          setTemporary(value);
          storePreferences({ model: models[0] ?? null, temporary: value });
        }}
        onSelect={select}
        onNew={startNew}
        onDialog={setDialog}
        onList={isWide ? list.toggle : drawer.toggle}
        listShown={isWide && listShown}
        onSettings={settings.toggle}
        settingsShown={settingsShown}
      />
      <ErrorNotice error={facts.error} />
      {unknown !== null && (
        <Text size="sm" role="alert" className="breakable">
          The link names the model “{unknown}”, which this server does not have.
        </Text>
      )}
      <div className="playground-columns">
        {isWide && listShown && <aside aria-label="Conversations">{sidebar}</aside>}
        <section className="playground-chat" aria-label="Conversation">
          <StandInNotice models={models.filter(facts.isStandIn)} />
          <Turns
            turns={chat.chat.turns}
            growing={chat.growing}
            responding={responding}
            actions={{
              onEdit: chat.edit,
              onRegenerate: chat.regenerate,
              onResults: chat.sendResults,
            }}
            editing={editing}
            onEditing={setEditing}
            onKeep={models.length > 1 ? chat.keep : undefined}
            empty={<EmptyTurns temporary={isTemporary} />}
          />
          {saving.error !== null && !isTemporary && <NotSaved error={saving.error} />}
          {chat.problem && (
            <Text size="sm" c="var(--mantine-color-error)" role="status">
              {chat.problem}
            </Text>
          )}
          <Composer
            responding={responding}
            blocked={chat.problem !== null}
            takesImages={models.every(facts.takesImages)}
            onSend={chat.send}
            onStop={chat.stop}
            onEditLast={editLast}
          />
        </section>
        {isWide && settingsShown && (
          <Paper component="aside" withBorder p="md" aria-label="Settings">
            {form}
          </Paper>
        )}
      </div>
      {!isWide && (
        <>
          <Drawer opened={settingsShown} onClose={settings.close} title="Settings" position="right">
            {form}
          </Drawer>
          <Drawer opened={drawerShown} onClose={drawer.close} title="Conversations">
            {sidebar}
          </Drawer>
        </>
      )}
      {dialog === 'share' && <ShareDialog saving={saving} onClose={() => setDialog(null)} />}
      <Modal
        opened={dialog === 'code'}
        onClose={() => setDialog(null)}
        title="Code for this chat"
        size="xl"
      >
        <CodeSamples samples={toShownCode(chat.chat, models[0] as string)} />
      </Modal>
    </div>
  );
}

const toShownCode = (chat: Chat, model: string) =>
  toChatCode(location.origin, toShownRequest({ ...chat, turns: inLane(chat.turns, 0) }, model));

const NotSaved = ({ error }: { error: unknown }) => (
  <Text size="sm" c="var(--mantine-color-error)" role="alert">
    This conversation could not be saved: {(error as Error).message}
  </Text>
);

/** Selects the model that the address names. Returns its name if this server does not have it, otherwise null. */
function useLinkedModel({ ids }: ModelFacts, select: (model: string) => void): string | null {
  const linked = useUrlState('/playground').get('model');
  const isKnown = linked !== null && ids?.includes(linked) === true;
  // biome-ignore lint/correctness/useExhaustiveDependencies: selects once for each link
  useEffect(() => {
    if (isKnown) select(linked);
  }, [linked, isKnown]);
  return linked !== null && ids !== null && !isKnown ? linked : null;
}
