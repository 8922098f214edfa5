// The field for the next message and its images. Enter sends it, Shift+Enter starts a new line, and the up arrow in
// the empty field edits the last question.

import { ActionIcon, CloseButton, FileButton, Group, Text, Textarea, Tooltip } from '@mantine/core';
import IconPhoto from '@tabler/icons-react/dist/esm/icons/IconPhoto.mjs';
import IconPlayerStopFilled from '@tabler/icons-react/dist/esm/icons/IconPlayerStopFilled.mjs';
import IconSend from '@tabler/icons-react/dist/esm/icons/IconSend.mjs';
import { type ClipboardEvent, type DragEvent, type KeyboardEvent, useState } from 'react';
import { isImage, maxImages, toImageUrl } from './images.ts';

interface ComposerProps {
  responding: boolean;
  /** True while nothing can be sent. */
  blocked: boolean;
  /** Whether every selected model takes images. */
  takesImages: boolean;
  onSend: (text: string, images: string[]) => void;
  onStop: () => void;
  onEditLast: () => void;
}

export function Composer(props: ComposerProps) {
  const { responding, blocked, takesImages, onSend, onStop, onEditLast } = props;
  const [text, setText] = useState('');
  const images = useImages(takesImages);
  const isEmpty = text.trim() === '' && images.urls.length === 0;
  const ready = !isEmpty && !responding && !blocked && (takesImages || images.urls.length === 0);
  const send = () => {
    if (!ready) return;
    onSend(text.trim(), images.urls);
    setText('');
    images.clear();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    // Enter belongs to the input method while it composes a character.
    if (event.nativeEvent.isComposing) return;
    if (event.key === 'ArrowUp' && text === '' && !responding) onEditLast();
    else if (event.key === 'Enter' && !event.shiftKey) send();
    else return;
    event.preventDefault();
  };
  return (
    <section aria-label="New message" onDrop={images.onDrop} onDragOver={images.onDragOver}>
      {images.urls.length > 0 && (
        <Group gap="xs" mb="xs">
          {images.urls.map((url, index) => (
            <div key={url} className="attachment">
              <img src={url} alt={`Attached ${index + 1}`} />
              <CloseButton
                size="xs"
                aria-label={`Remove image ${index + 1}`}
                onClick={() => images.removeAt(index)}
              />
            </div>
          ))}
        </Group>
      )}
      {images.problem && (
        <Text size="sm" c="var(--mantine-color-error)" role="alert" mb={4}>
          {images.problem}
        </Text>
      )}
      <Textarea
        aria-label="Message"
        placeholder="Write a message and press Enter."
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
        onPaste={images.onPaste}
        autosize
        minRows={1}
        maxRows={8}
        size="md"
        leftSectionWidth={takesImages ? 44 : 0}
        leftSectionPointerEvents="all"
        leftSection={takesImages && <AttachButton onFiles={images.add} />}
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
    </section>
  );
}

const AttachButton = ({ onFiles }: { onFiles: (files: File[]) => void }) => (
  <FileButton onChange={onFiles} accept="image/png,image/jpeg,image/webp,image/gif" multiple>
    {(button) => (
      <Tooltip label="Attach images">
        <ActionIcon {...button} variant="subtle" color="gray" size="lg" aria-label="Attach images">
          <IconPhoto size={19} stroke={1.6} aria-hidden />
        </ActionIcon>
      </Tooltip>
    )}
  </FileButton>
);

/** The images of the next message. They come from a file dialog, the clipboard, or by drag and drop. */
function useImages(accepted: boolean) {
  const [urls, setUrls] = useState<string[]>([]);
  const [problem, setProblem] = useState<string | null>(null);
  async function add(files: File[]) {
    setProblem(null);
    if (files.length === 0) return;
    if (!accepted) return setProblem('The selected model takes no images.');
    if (urls.length + files.length > maxImages) {
      return setProblem(`A message can have ${maxImages} images at most.`);
    }
    try {
      const added = await Promise.all(files.map(toImageUrl));
      setUrls((before) => [...new Set([...before, ...added])]);
    } catch (error) {
      setProblem((error as Error).message);
    }
  }
  return {
    urls,
    problem: !accepted && urls.length > 0 ? 'The selected model takes no images.' : problem,
    add,
    clear: () => setUrls([]),
    removeAt: (index: number) => setUrls(urls.toSpliced(index, 1)),
    onPaste(event: ClipboardEvent) {
      const files = [...event.clipboardData.files].filter(isImage);
      if (files.length === 0) return;
      event.preventDefault();
      void add(files);
    },
    onDragOver: (event: DragEvent) => event.preventDefault(),
    onDrop(event: DragEvent) {
      event.preventDefault();
      void add([...event.dataTransfer.files]);
    },
  };
}
