// Choices of a launch that are saved under a name in this browser.

import { Button, CloseButton, Group, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { LaunchChoice } from './launch-choice.ts';
import { readTemplates, removeTemplate, saveTemplate } from './launch-memory.ts';

interface LaunchTemplatesProps {
  choice: LaunchChoice;
  onChoose: (choice: LaunchChoice) => void;
}

export function LaunchTemplates({ choice, onChoose }: LaunchTemplatesProps) {
  const [templates, setTemplates] = useState(readTemplates);
  const [name, setName] = useState<string | null>(null);
  const save = () => {
    if (!name?.trim()) return;
    setTemplates(saveTemplate({ name: name.trim(), choice }));
    setName(null);
  };
  if (templates.length === 0 && choice.type === null) return null;
  return (
    <Group gap="xs" role="group" aria-label="Templates">
      {templates.map((template) => (
        <Group key={template.name} gap={0} wrap="nowrap" className="template">
          <Button variant="default" size="xs" onClick={() => onChoose(template.choice)}>
            {template.name}
          </Button>
          <CloseButton
            size="sm"
            aria-label={`Delete template ${template.name}`}
            onClick={() => setTemplates(removeTemplate(template.name))}
          />
        </Group>
      ))}
      {choice.type !== null && name === null && (
        <Button variant="subtle" size="xs" onClick={() => setName('')}>
          Save as template
        </Button>
      )}
      {name !== null && (
        <>
          <TextInput
            size="xs"
            aria-label="Template name"
            placeholder="Template name"
            maxLength={40}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== 'Enter') return;
              event.preventDefault();
              save();
            }}
            autoFocus
          />
          <Button variant="default" size="xs" onClick={save} disabled={name.trim() === ''}>
            Save
          </Button>
        </>
      )}
    </Group>
  );
}
