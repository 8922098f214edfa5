// The row above the chat: the models, and what can be done with the conversation as a whole.

import { ActionIcon, Box, Button, Group, Menu, Switch, Title, Tooltip } from '@mantine/core';
import IconAdjustments from '@tabler/icons-react/dist/esm/icons/IconAdjustments.mjs';
import IconColumns2 from '@tabler/icons-react/dist/esm/icons/IconColumns2.mjs';
import IconDots from '@tabler/icons-react/dist/esm/icons/IconDots.mjs';
import IconLayoutSidebar from '@tabler/icons-react/dist/esm/icons/IconLayoutSidebar.mjs';
import IconPlus from '@tabler/icons-react/dist/esm/icons/IconPlus.mjs';
import IconX from '@tabler/icons-react/dist/esm/icons/IconX.mjs';
import { download } from '../browser/download.ts';
import { Breadcrumbs } from '../components/breadcrumbs.tsx';
import { toMarkdown, toName } from './conversation.ts';
import type { Saving } from './library.ts';
import type { ModelFacts } from './model-facts.ts';
import { ModelPicker } from './model-picker.tsx';
import type { useChat } from './use-chat.ts';

interface ToolbarProps {
  name: string;
  chat: ReturnType<typeof useChat>;
  facts: ModelFacts;
  saving: Saving;
  temporary: boolean;
  settingsShown: boolean;
  /** The list has a button for a new chat of its own. */
  listShown: boolean;
  onTemporary: (temporary: boolean) => void;
  onSelect: (models: string[]) => void;
  onNew: () => void;
  onDialog: (dialog: 'code' | 'share') => void;
  onList: () => void;
  onSettings: () => void;
}

export function Toolbar(props: ToolbarProps) {
  const { chat, saving } = props;
  const { turns } = chat.chat;
  const exportChat = () => {
    const title = saving.saved?.name ?? toName(turns);
    const file = `${title.replaceAll(/[^\p{L}\p{N}]+/gu, '-').replaceAll(/^-|-$/g, '')}.md`;
    download(file, toMarkdown(title, chat.chat), 'text/markdown');
  };
  return (
    <Group justify="space-between" gap="sm">
      <Breadcrumbs title={props.name} />
      <Group gap="xs" wrap="nowrap">
        <Tooltip label="Conversations">
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label="Conversations"
            onClick={props.onList}
          >
            <IconLayoutSidebar size={19} stroke={1.6} aria-hidden />
          </ActionIcon>
        </Tooltip>
        <Title order={1} size="h3">
          Playground
        </Title>
      </Group>
      <Models {...props} />
      <Group gap="xs" ml="auto">
        {saving.saved === null && (
          <Tooltip label="Not saved: it is gone when you leave the page">
            <Switch
              size="xs"
              label="Temporary"
              checked={props.temporary}
              onChange={(event) => props.onTemporary(event.currentTarget.checked)}
            />
          </Tooltip>
        )}
        {!props.listShown && turns.length > 0 && (
          <Button
            variant="default"
            size="xs"
            leftSection={<IconPlus size={15} aria-hidden />}
            className="playground-action"
            aria-label="New chat"
            onClick={props.onNew}
          >
            <Box component="span" visibleFrom="sm">
              New chat
            </Box>
          </Button>
        )}
        {saving.saved !== null && (
          <Button variant="default" size="xs" onClick={() => props.onDialog('share')}>
            {saving.saved.shared ? 'Shared' : 'Share'}
          </Button>
        )}
        <Button
          variant={props.settingsShown ? 'light' : 'default'}
          size="xs"
          leftSection={<IconAdjustments size={15} aria-hidden />}
          className="playground-action"
          aria-label="Settings"
          aria-expanded={props.settingsShown}
          onClick={props.onSettings}
        >
          <Box component="span" visibleFrom="sm">
            Settings
          </Box>
        </Button>
        <Menu position="bottom-end">
          <Menu.Target>
            <ActionIcon variant="default" size={30} aria-label="More actions">
              <IconDots size={16} aria-hidden />
            </ActionIcon>
          </Menu.Target>
          <Menu.Dropdown>
            <Menu.Item onClick={() => props.onDialog('code')}>View code</Menu.Item>
            <Menu.Item onClick={exportChat} disabled={turns.length === 0 || chat.responding}>
              Export as markdown
            </Menu.Item>
          </Menu.Dropdown>
        </Menu>
      </Group>
    </Group>
  );
}

function Models({ chat, facts, onSelect }: ToolbarProps) {
  const { models, responding } = chat;
  const [first = facts.defaultModel, second] = models;
  const isComparing = second !== undefined;
  const other = facts.ids?.find((id) => id !== first) ?? first;
  return (
    <Group gap="xs" className="playground-models">
      <ModelPicker
        label="Model"
        facts={facts}
        value={first}
        onChange={(model) => onSelect(isComparing ? [model, second] : [model])}
      />
      {isComparing && (
        <ModelPicker
          label="Second model"
          facts={facts}
          value={second}
          onChange={(model) => onSelect([first, model])}
        />
      )}
      <Tooltip label={isComparing ? 'Stop comparing' : 'Compare with another model'}>
        <ActionIcon
          variant="default"
          size={36}
          disabled={responding}
          aria-label={isComparing ? 'Stop comparing' : 'Compare with another model'}
          onClick={() => (isComparing ? chat.keep(0) : chat.compare(other))}
        >
          {isComparing ? <IconX size={17} aria-hidden /> : <IconColumns2 size={17} aria-hidden />}
        </ActionIcon>
      </Tooltip>
    </Group>
  );
}
