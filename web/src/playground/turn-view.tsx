// One turn of the conversation, with what can be done to it and how its answer came about.

import { ActionIcon, Badge, Button, Group, Paper, Stack, Text, Textarea } from '@mantine/core';
import IconPencil from '@tabler/icons-react/dist/esm/icons/IconPencil.mjs';
import IconRefresh from '@tabler/icons-react/dist/esm/icons/IconRefresh.mjs';
import { useState } from 'react';
import { ApiError } from '../api.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { AnswerText } from './answer-text.tsx';
import type { Outcome, Turn } from './conversation.ts';
import { ToolCalls } from './tool-calls.tsx';

interface TurnProps {
  turn: Turn;
  isLast: boolean;
  answering: boolean;
  onEdit: (id: string, text: string) => void;
  onRegenerate: () => void;
  onResults: (results: { id: string; text: string }[]) => void;
}

export function TurnView(props: TurnProps) {
  const { turn, isLast, answering, onEdit, onRegenerate } = props;
  const [editing, setEditing] = useState(false);
  if (editing) {
    const finish = (text: string | null) => {
      setEditing(false);
      if (text !== null) onEdit(turn.id, text);
    };
    return <TurnEditor text={turn.text} onFinish={finish} />;
  }
  if (turn.role === 'tool') {
    return (
      <div className="turn turn-user">
        <Text component="h2" size="xs" c="dimmed">
          Result of the tool
        </Text>
        <Paper px="md" py="xs" className="turn-text turn-bubble">
          {turn.text}
        </Paper>
      </div>
    );
  }
  if (turn.role === 'user') {
    return (
      <div className="turn turn-user">
        <Text component="h2" className="only-heard">
          You
        </Text>
        <Paper px="md" py="xs" className="turn-text turn-bubble">
          {turn.text}
        </Paper>
        <Group gap={2}>
          <CopyButton value={turn.text} label="Copy the message" />
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label="Edit the message"
            disabled={answering}
            onClick={() => setEditing(true)}
          >
            <IconPencil size={17} stroke={1.6} aria-hidden />
          </ActionIcon>
        </Group>
      </div>
    );
  }
  const { text, outcome } = turn;
  return (
    <div className="turn">
      <Text component="h2" className="only-heard">
        Answer
      </Text>
      {text === '' && outcome === null ? (
        <Text c="dimmed" className="turn-waiting">
          Waiting for the first word…
        </Text>
      ) : (
        <AnswerText text={text} tokens={turn.tokens} />
      )}
      {turn.toolCalls && turn.toolCalls.length > 0 && (
        <ToolCalls
          calls={turn.toolCalls}
          open={isLast && outcome !== null && !answering}
          onResults={props.onResults}
        />
      )}
      {outcome?.failure && (
        <ErrorNotice
          error={new ApiError(outcome.failure.message, toDetail(outcome.failure))}
          {...(isLast ? { onRetry: onRegenerate } : {})}
        />
      )}
      {outcome?.servedBy && standIns[outcome.servedBy] && (
        <StandInNotice name={standIns[outcome.servedBy]} />
      )}
      {outcome && (
        <Group gap={2} mih={28}>
          {text !== '' && <CopyButton value={text} label="Copy the answer" />}
          {isLast && !outcome.failure && (
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label="Answer again"
              disabled={answering}
              onClick={onRegenerate}
            >
              <IconRefresh size={17} stroke={1.6} aria-hidden />
            </ActionIcon>
          )}
          <Text size="xs" c="dimmed" ml={4}>
            {describe(outcome)}
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

/** By the name under which the server says who answered. */
const standIns: Record<string, string> = {
  builtin: 'the small built-in model',
  'stand-in': 'the configured stand-in',
};

const StandInNotice = ({ name }: { name: string | undefined }) => (
  <Group gap="xs">
    <Badge variant="default" tt="none">
      Stand-in
    </Badge>
    <Text size="xs" c="dimmed">
      This model has no backend yet, so {name} answered in its place.
    </Text>
  </Group>
);

const finishes: Record<string, string> = {
  stopped: 'stopped by you',
  length: 'cut at the token limit',
  content_filter: 'withheld by the backend',
};

/** e.g. "21 tokens in · 85 out · 42.1 tokens/s · first token after 0.18 s". */
export function describe(outcome: Outcome): string {
  const { promptTokens, completionTokens, tokensPerSecond, firstTokenMs, finish } = outcome;
  return [
    promptTokens !== null && `${promptTokens} tokens in`,
    completionTokens !== null && `${completionTokens} out`,
    tokensPerSecond !== null && `${tokensPerSecond.toFixed(1)} tokens/s`,
    firstTokenMs !== null && `first token after ${(firstTokenMs / 1000).toFixed(2)} s`,
    finish !== null && finishes[finish],
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
          Send again
        </Button>
        <Button size="xs" variant="default" onClick={() => props.onFinish(null)}>
          Cancel
        </Button>
        <Text size="xs" c="dimmed">
          What followed this message is dropped.
        </Text>
      </Group>
    </Stack>
  );
}
