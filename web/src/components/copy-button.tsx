// Copying to the clipboard: a small button beside a value, and a secret that is shown only once.

import { ActionIcon, Button, Text, Tooltip } from '@mantine/core';
import IconCheck from '@tabler/icons-react/dist/esm/icons/IconCheck.mjs';
import IconCopy from '@tabler/icons-react/dist/esm/icons/IconCopy.mjs';
import { useEffect, useState } from 'react';
import { copyText } from '../browser/clipboard.ts';

export function CopyButton({ value, label }: { value: string; label: string }) {
  const { copied, copy } = useCopy();
  const Icon = copied ? IconCheck : IconCopy;
  return (
    <Tooltip label={copied ? 'Copied' : label}>
      <ActionIcon variant="subtle" color="gray" onClick={() => copy(value)} aria-label={label}>
        <Icon size={17} stroke={1.6} aria-hidden />
      </ActionIcon>
    </Tooltip>
  );
}

interface SecretFieldProps {
  label: string;
  value: string;
}

export function SecretField({ label, value }: SecretFieldProps) {
  const { copied, copy } = useCopy();
  return (
    <div>
      <Text size="sm" fw={500} mb={4} className="breakable">
        {label}
      </Text>
      <div className="secret-field">
        <output aria-label={label} className="code-block breakable">
          {value}
        </output>
        <Button
          h="auto"
          mih={36}
          onClick={() => copy(value)}
          leftSection={copied ? <IconCheck size={16} /> : <IconCopy size={16} />}
          miw={104}
        >
          {copied ? 'Copied' : 'Copy'}
        </Button>
      </div>
    </div>
  );
}

function useCopy() {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async (text: string) => setCopied(await copyText(text));
  return { copied, copy };
}
