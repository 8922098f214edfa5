// The field for the next message. Enter sends it, Shift+Enter starts a new line.

import { ActionIcon, Textarea } from '@mantine/core';
import IconPlayerStopFilled from '@tabler/icons-react/dist/esm/icons/IconPlayerStopFilled.mjs';
import IconSend from '@tabler/icons-react/dist/esm/icons/IconSend.mjs';
import { type KeyboardEvent, useState } from 'react';

interface ComposerProps {
  responding: boolean;
  /** True while nothing can be sent. */
  blocked: boolean;
  onSend: (text: string) => void;
  onStop: () => void;
}

export function Composer({ responding, blocked, onSend, onStop }: ComposerProps) {
  const [text, setText] = useState('');
  const ready = text.trim() !== '' && !responding && !blocked;
  const send = () => {
    if (!ready) return;
    onSend(text.trim());
    setText('');
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // Enter belongs to the input method while it composes a character.
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <Textarea
      aria-label="Message"
      placeholder="Write a message and press Enter."
      value={text}
      onChange={(event) => setText(event.currentTarget.value)}
      onKeyDown={onKeyDown}
      autosize
      minRows={1}
      maxRows={8}
      size="md"
      rightSectionWidth={48}
      rightSectionPointerEvents="all"
      rightSection={
        responding ? (
          <ActionIcon size="lg" onClick={onStop} aria-label="Stop">
            <IconPlayerStopFilled size={17} aria-hidden />
          </ActionIcon>
        ) : (
          <ActionIcon size="lg" onClick={send} disabled={!ready} aria-label="Send">
            <IconSend size={17} aria-hidden />
          </ActionIcon>
        )
      }
    />
  );
}
