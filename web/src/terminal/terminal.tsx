// A terminal of one machine: a login shell that ends when its page is left.

import { Button, Group, Text } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import type { Instance } from '#cloud/schema.ts';
import { EmptyState } from '../components/empty-state.tsx';
import { connect } from './connection.ts';
import '@xterm/xterm/css/xterm.css';
import './terminal.css';

interface TerminalProps {
  /** Undefined if the machine is gone, or the user may not use machines. */
  instance: Instance | undefined;
}

export default function Terminal({ instance }: TerminalProps) {
  // After the machine is terminated, the last output of its shell stays on the screen.
  const wasActive = useRef(false);
  wasActive.current ||= instance?.status === 'active';
  const [attempt, setAttempt] = useState(1);
  const lastId = useRef('');
  if (instance) lastId.current = instance.id;
  if (!wasActive.current) {
    return (
      <EmptyState title="No terminal available" art="machine">
        {instance
          ? `This machine is ${instance.status}. The terminal opens automatically once it is active.`
          : 'This machine is not running, or your role does not allow using machines.'}
      </EmptyState>
    );
  }
  return <Shell key={attempt} id={lastId.current} onReconnect={() => setAttempt(attempt + 1)} />;
}

function Shell({ id, onReconnect }: { id: string; onReconnect: () => void }) {
  const element = useRef<HTMLDivElement>(null);
  const [state, setState] = useState<'connecting' | 'open' | 'closed'>('connecting');
  const [reason, setReason] = useState<string | null>(null);
  useEffect(() => {
    const connection = connect(element.current as HTMLDivElement, id, {
      onOpen: () => setState('open'),
      onLeave: () => focusTab(element.current),
      onClose(closeReason) {
        setReason(closeReason);
        setState('closed');
      },
    });
    return connection.close;
  }, [id]);
  return (
    <div>
      <Text size="sm" c="dimmed" mb="xs">
        A login shell as ubuntu. It ends when you leave this page. Press Shift+Esc to move the focus
        out of the terminal, to its tab.
      </Text>
      <div ref={element} className="shell-frame" />
      <Group mt="xs" mih={30} justify="space-between">
        <Text size="sm" c="dimmed" role="status">
          {state === 'connecting' && 'Connecting…'}
          {state === 'open' && 'Connected.'}
          {state === 'closed' && (reason ?? 'The connection was lost or could not be established.')}
        </Text>
        {state === 'closed' && (
          <Button variant="default" size="xs" onClick={onReconnect}>
            Reconnect
          </Button>
        )}
      </Group>
    </div>
  );
}

/** The tab of the panel that the element is in. */
function focusTab(element: HTMLElement | null): void {
  const id = element?.closest('[role="tabpanel"]')?.getAttribute('aria-labelledby');
  if (id != null) document.getElementById(id)?.focus();
}
