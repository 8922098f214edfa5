// The turns of a conversation. While two models are compared, their responses to a question stand side by side.

import { Button, Text } from '@mantine/core';
import { type ReactNode, type RefObject, useEffect, useRef } from 'react';
import { inLane, type ShownTurn } from './conversation.ts';
import type { GrowingTurns } from './growing-turns.ts';
import { type TurnActions, TurnView } from './turn-view.tsx';

interface TurnsProps {
  turns: ShownTurn[];
  /** Undefined in a conversation that can only be read. */
  growing?: GrowingTurns;
  responding: boolean;
  /** Undefined in a conversation that can only be read. */
  actions?: TurnActions | undefined;
  /** The id of the message that is being edited. */
  editing?: string | null;
  onEditing?: (id: string | null) => void;
  /** Ends the comparison and keeps this lane. */
  onKeep?: ((lane: number) => void) | undefined;
  empty: ReactNode;
}

export function Turns(props: TurnsProps) {
  const { turns, growing, responding, actions, editing = null, onEditing, onKeep, empty } = props;
  const list = useRef<HTMLDivElement>(null);
  const last = turns.at(-1);
  useAutoScroll(list, `${turns.length}:${last?.outcome == null}`);
  const ends = new Set([inLane(turns, 0).at(-1), inLane(turns, 1).at(-1)]);
  const view = (turn: ShownTurn) => (
    <TurnView
      key={turn.id}
      turn={turn}
      growing={growing}
      isLast={ends.has(turn)}
      responding={responding}
      actions={actions}
      editing={editing === turn.id}
      onEditing={(on) => onEditing?.(on ? turn.id : null)}
    />
  );
  const groups = toGroups(turns);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, which the keyboard must reach
    <div ref={list} className="turns" tabIndex={0} role="log" aria-busy={responding}>
      {turns.length === 0 && empty}
      {groups.map((group, index) =>
        group.some(({ lane }) => lane !== undefined) ? (
          <div key={group[0]?.id} className="lanes">
            {[0, 1].map((lane) => (
              <section key={lane} aria-label={lane === 0 ? 'First model' : 'Second model'}>
                {group.filter((turn) => turn.lane === lane).map(view)}
                {index === groups.length - 1 && !responding && onKeep && (
                  <Button variant="default" size="compact-xs" onClick={() => onKeep(lane)}>
                    Continue with this one
                  </Button>
                )}
              </section>
            ))}
          </div>
        ) : (
          group.map(view)
        ),
      )}
      {last && last.role !== 'assistant' && !responding && actions && (
        <Button variant="default" size="xs" onClick={() => actions.onRegenerate(last.lane)}>
          Get a response
        </Button>
      )}
    </div>
  );
}

/** Neighbours that both belong to a lane, or both to none, are in one group. */
function toGroups(turns: ShownTurn[]): ShownTurn[][] {
  const groups: ShownTurn[][] = [];
  for (const turn of turns) {
    const group = groups.at(-1);
    const isSame =
      group !== undefined && (group[0]?.lane === undefined) === (turn.lane === undefined);
    if (isSame) group.push(turn);
    else groups.push([turn]);
  }
  return groups;
}

export const EmptyTurns = ({ temporary }: { temporary: boolean }) => (
  <div className="turns-empty">
    <Text fw={600} size="lg">
      What would you like to know?
    </Text>
    <Text c="dimmed" size="sm">
      {temporary
        ? 'This chat is temporary: it is saved nowhere, and gone when you leave the page.'
        : 'Conversations are saved on this server. Only you see them until you share one with your team. Nothing is stored in this browser.'}
    </Text>
    <Text c="dimmed" size="xs">
      Enter sends · Shift+Enter starts a new line · Esc stops · ↑ edits your last message
    </Text>
  </div>
);

/** Keeps the newest text in view unless the user has scrolled up. */
function useAutoScroll(list: RefObject<HTMLDivElement | null>, change: string): void {
  const atEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls when the content changes
  useEffect(() => {
    const element = list.current;
    if (element === null) return;
    const follow = () => {
      if (atEnd.current) element.scrollTop = element.scrollHeight;
    };
    const onScroll = () => {
      atEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 64;
    };
    // New text, highlighting and images change the height.
    const observer = new ResizeObserver(follow);
    for (const child of element.children) observer.observe(child);
    follow();
    element.addEventListener('scroll', onScroll, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', onScroll);
    };
  }, [list, change]);
}
