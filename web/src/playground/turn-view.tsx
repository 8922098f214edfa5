// One turn of the conversation with its actions: a user message, a tool result, or a response with its
// statistics.

import { ActionIcon, Badge, Button, Group, Paper, Stack, Text, Textarea } from '@mantine/core';
import IconPencil from '@tabler/icons-react/dist/esm/icons/IconPencil.mjs';
import IconRefresh from '@tabler/icons-react/dist/esm/icons/IconRefresh.mjs';
import { useState } from 'react';
import { ApiError } from '../api.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import type { Outcome, Turn } from './conversation.ts';
import { ResponseText } from './response-text.tsx';
import { ToolCalls } from './tool-calls.tsx';

interface TurnProps {
  turn: Turn;
  isLast: boolean;
  responding: boolean;
  onEdit: (id: string, text: string) => void;
  onRegenerate: () => void;
  onResults: (results: { id: string; text: string }[]) => void;
}

export function TurnView(props: TurnProps) {
  const { turn } = props;
  if (turn.role === 'tool') return <ToolResult text={turn.text} />;
  return turn.role === 'user' ? <UserTurn {...props} /> : <ResponseTurn {...props} />;
}

const ToolResult = ({ text }: { text: string }) => (
  <div className="turn turn-user">
    <Text component="h2" size="xs" c="dimmed">
      Tool result
    </Text>
    <Paper px="md" py="xs" className="turn-text turn-bubble">
      {text}
    </Paper>
  </div>
);

function UserTurn({ turn, responding, onEdit }: TurnProps) {
  const [editing, setEditing] = useState(false);
  const finish = (text: string | null) => {
    setEditing(false);
    if (text !== null) onEdit(turn.id, text);
  };
  if (editing) return <TurnEditor text={turn.text} onFinish={finish} />;
  return (
    <div className="turn turn-user">
      <Text component="h2" className="visually-hidden">
        You
      </Text>
      <Paper px="md" py="xs" className="turn-text turn-bubble">
        {turn.text}
      </Paper>
      <Group gap={2}>
        <CopyButton value={turn.text} label="Copy message" />
        <ActionIcon
          variant="subtle"
          color="gray"
          aria-label="Edit message"
          disabled={responding}
          onClick={() => setEditing(true)}
        >
          <IconPencil size={17} stroke={1.6} aria-hidden />
        </ActionIcon>
      </Group>
    </div>
  );
}

function ResponseTurn({ turn, isLast, responding, onRegenerate, onResults }: TurnProps) {
  const { text, outcome, tokens, toolCalls = [] } = turn;
  const standIn = standIns[outcome?.servedBy ?? ''];
  return (
    <div className="turn">
      <Text component="h2" className="visually-hidden">
        Response
      </Text>
      {text === '' && outcome === null ? (
        <Text c="dimmed" className="turn-waiting">
          Waiting for the response…
        </Text>
      ) : (
        <ResponseText text={text} tokens={tokens} />
      )}
      {toolCalls.length > 0 && (
        <ToolCalls
          calls={toolCalls}
          open={isLast && outcome !== null && !responding}
          onResults={onResults}
        />
      )}
      {outcome?.failure && (
        <ErrorNotice
          error={new ApiError(outcome.failure.message, toDetail(outcome.failure))}
          {...(isLast ? { onRetry: onRegenerate } : {})}
        />
      )}
      {standIn && <StandInNotice name={standIn} />}
      {outcome && (
        <Group gap={2} mih={28}>
          {text !== '' && <CopyButton value={text} label="Copy response" />}
          {isLast && !outcome.failure && (
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label="Regenerate response"
              disabled={responding}
              onClick={onRegenerate}
            >
              <IconRefresh size={17} stroke={1.6} aria-hidden />
            </ActionIcon>
          )}
          <Text size="xs" c="dimmed" ml={4}>
            {toStatistics(outcome)}
          </Text>
        </Group>
      )}
    </div>
  );
}

const toDetail = ({ suggestion, requestId }: NonNullable<Outcome['failure']>) => ({
  status: 0,
  requestId,
  ...(suggestion === null ? {} : { suggestion }),
});

/** Models that answer for a model without a backend, by their name in the `x-served-by` header. */
const standIns: Record<string, string> = {
  builtin: 'the small built-in model',
  'stand-in': 'the configured stand-in',
};

const StandInNotice = ({ name }: { name: string }) => (
  <Group gap="xs">
    <Badge variant="default" tt="none">
      Stand-in
    </Badge>
    <Text size="xs" c="dimmed">
      This model has no backend yet, so {name} answered instead.
    </Text>
  </Group>
);

const finishReasons: Record<string, string> = {
  stopped: 'stopped by you',
  length: 'cut off at the token limit',
  content_filter: 'withheld by the backend’s content filter',
};

/** e.g. "21 tokens in · 85 out · 42.1 tokens/s · first token after 0.18 s". */
function toStatistics(outcome: Outcome): string {
  const { promptTokens, completionTokens, tokensPerSecond, firstTokenMs, finish } = outcome;
  return [
    promptTokens !== null && `${promptTokens} tokens in`,
    completionTokens !== null && `${completionTokens} out`,
    tokensPerSecond !== null && `${tokensPerSecond.toFixed(1)} tokens/s`,
    firstTokenMs !== null && `first token after ${(firstTokenMs / 1000).toFixed(2)} s`,
    finish !== null && finishReasons[finish],
  ]
    .filter(Boolean)
    .join(' · ');
}

function TurnEditor(props: { text: string; onFinish: (text: string | null) => void }) {
  const [text, setText] = useState(props.text);
  return (
    <Stack gap="xs" className="turn">
      <Textarea
        aria-label="Edited message"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        autosize
        minRows={2}
        maxRows={12}
        autoFocus
      />
      <Group gap="xs">
        <Button size="xs" disabled={text.trim() === ''} onClick={() => props.onFinish(text)}>
          Save and resend
        </Button>
        <Button size="xs" variant="default" onClick={() => props.onFinish(null)}>
          Cancel
        </Button>
        <Text size="xs" c="dimmed">
          Everything after this message is deleted.
        </Text>
      </Group>
    </Stack>
  );
}
