// One turn of the conversation with its actions: a user message, a tool result, or a response with its
// statistics.

import { ActionIcon, Badge, Button, Group, Paper, Stack, Text, Textarea } from '@mantine/core';
import IconPencil from '@tabler/icons-react/dist/esm/icons/IconPencil.mjs';
import IconRefresh from '@tabler/icons-react/dist/esm/icons/IconRefresh.mjs';
import { memo, useState } from 'react';
import type { Outcome } from '#accounts/conversations/schema.ts';
import { toMoney } from '#lib/text/format.ts';
import { ApiError } from '../api.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import type { ShownTurn } from './conversation.ts';
import { type GrowingTurns, useGrowingTurn } from './growing-turns.ts';
import { Reasoning } from './reasoning.tsx';
import { ResponseText } from './response-text.tsx';
import { ToolCalls } from './tool-calls.tsx';

export interface TurnActions {
  onEdit: (id: string, text: string) => void;
  onRegenerate: (lane?: number) => void;
  onResults: (results: { id: string; text: string }[], lane?: number) => void;
}

interface TurnProps {
  turn: ShownTurn;
  /** True for the last turn of its lane. */
  isLast: boolean;
  responding: boolean;
  /** Undefined in a conversation that can only be read. */
  actions?: TurnActions | undefined;
}

interface EditableTurnProps extends TurnProps {
  /** Undefined in a conversation that can only be read. */
  growing: GrowingTurns | undefined;
  editing: boolean;
  onEditing: (editing: boolean) => void;
}

/** Memoized: while a response streams in, the other turns are not rendered. */
export const TurnView = memo(
  function TurnView(props: EditableTurnProps) {
    const turn = useGrowingTurn(props.turn, props.growing);
    if (turn.role === 'tool') return <ToolResult text={turn.text} />;
    if (turn.role === 'user') return <UserTurn {...props} />;
    return <ResponseTurn {...props} turn={turn} />;
  },
  (before, after) =>
    before.turn === after.turn &&
    before.isLast === after.isLast &&
    before.responding === after.responding &&
    before.editing === after.editing &&
    // The actions of a finished conversation work on its newest state.
    (after.responding || before.actions === after.actions),
);

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

function UserTurn({ turn, responding, actions, editing, onEditing }: EditableTurnProps) {
  const finish = (text: string | null) => {
    onEditing(false);
    if (text !== null) actions?.onEdit(turn.id, text);
  };
  if (editing) return <TurnEditor text={turn.text} onFinish={finish} />;
  return (
    <div className="turn turn-user">
      <Text component="h2" className="visually-hidden">
        You
      </Text>
      {turn.images?.map((url, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the images of a message never change
        <img key={index} src={url} alt={`Attached ${index + 1}`} className="turn-image" />
      ))}
      {turn.text !== '' && (
        <Paper px="md" py="xs" className="turn-text turn-bubble">
          {turn.text}
        </Paper>
      )}
      <Group gap={2} className="turn-actions">
        <CopyButton value={turn.text} label="Copy message" />
        {actions && (
          <ActionIcon
            variant="subtle"
            color="gray"
            aria-label="Edit message"
            disabled={responding}
            onClick={() => onEditing(true)}
          >
            <IconPencil size={17} stroke={1.6} aria-hidden />
          </ActionIcon>
        )}
      </Group>
    </div>
  );
}

function ResponseTurn({ turn, isLast, responding, actions }: TurnProps) {
  const { text, outcome, tokens, tool_calls = [], reasoning = '', lane } = turn;
  const growing = outcome == null && responding;
  return (
    <div className="turn">
      <Text component="h2" className={lane === undefined ? 'visually-hidden' : 'lane-name'}>
        {lane === undefined ? 'Response' : turn.model}
      </Text>
      {reasoning !== '' && (
        <Reasoning
          text={reasoning}
          duration={turn.reasoning_ms ?? 0}
          thinking={growing && text === ''}
        />
      )}
      {text === '' && reasoning === '' && growing && (
        <Text c="dimmed" className="turn-waiting">
          Waiting for the response…
        </Text>
      )}
      {text !== '' && <ResponseText text={text} tokens={tokens} growing={growing} />}
      {tool_calls.length > 0 && (
        <ToolCalls
          calls={tool_calls}
          open={isLast && outcome != null && !responding && actions !== undefined}
          onResults={(results) => actions?.onResults(results, lane)}
        />
      )}
      {outcome?.failure && (
        <ErrorNotice
          error={new ApiError(outcome.failure.message, toDetail(outcome.failure))}
          {...(isLast && actions ? { onRetry: () => actions.onRegenerate(lane) } : {})}
        />
      )}
      {standInNames.has(outcome?.served_by ?? '') && standInNotice}
      {outcome && (
        <Group gap={2} mih={28} className="turn-actions">
          {text !== '' && <CopyButton value={text} label="Copy response" />}
          {isLast && !outcome.failure && actions && (
            <ActionIcon
              variant="subtle"
              color="gray"
              aria-label="Regenerate response"
              disabled={responding}
              onClick={() => actions.onRegenerate(lane)}
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

const toDetail = ({ suggestion, request_id }: NonNullable<Outcome['failure']>) => ({
  status: 0,
  requestId: request_id ?? null,
  ...(suggestion == null ? {} : { suggestion }),
});

/** What the `x-served-by` header names if the stand-in answered: the built-in model, or the configured one. */
export const standInNames: ReadonlySet<string> = new Set(['builtin', 'stand-in']);

const standInNotice = (
  <Group gap="xs">
    <Badge variant="default" tt="none">
      Stand-in
    </Badge>
    <Text size="xs" c="dimmed">
      This model has no backend yet, so the stand-in answered instead.
    </Text>
  </Group>
);

const finishReasons: Record<string, string> = {
  stopped: 'stopped by you',
  length: 'cut off at the token limit',
  content_filter: 'withheld by the backend’s content filter',
};

/** e.g. "21 tokens in · 85 out · 42.1 tokens/s · first token after 0.18 s · $0.0000032". */
function toStatistics(outcome: Outcome): string {
  const { prompt_tokens, completion_tokens, tokens_per_second, first_token_ms, cost } = outcome;
  return [
    prompt_tokens != null && `${prompt_tokens} tokens in`,
    completion_tokens != null && `${completion_tokens} out`,
    tokens_per_second != null && `${tokens_per_second.toFixed(1)} tokens/s`,
    first_token_ms != null && `first token after ${(first_token_ms / 1000).toFixed(2)} s`,
    cost != null && (cost === 0 ? 'free' : toMoney(cost)),
    outcome.finish != null && finishReasons[outcome.finish],
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
        onKeyDown={(event) => event.key === 'Escape' && props.onFinish(null)}
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
