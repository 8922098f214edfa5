// Adds a public key, or has a pair made and hands over its private half this once.

import {
  Alert,
  Button,
  Group,
  Modal,
  SegmentedControl,
  Stack,
  Text,
  Textarea,
  TextInput,
} from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { NewSshKey, SshKey } from '#cloud/schema.ts';
import { post } from '../api.ts';
import { download, toPemName } from '../browser/download.ts';
import { ErrorNotice } from '../components/error-notice.tsx';

interface DialogProps {
  onAdded: () => void;
  onClose: () => void;
}

export function AddSshKeyDialog({ onAdded, onClose }: DialogProps) {
  const [way, setWay] = useState('own');
  const [generated, setGenerated] = useState<SshKey | null>(null);
  const add = useMutation({
    mutationFn: (form: FormData) => {
      const body: NewSshKey = { name: String(form.get('name')) };
      if (way === 'own') body.public_key = String(form.get('public_key')).trim();
      return post<{ data: SshKey }>('/api/v1/ssh-keys', body);
    },
    onSuccess({ data }) {
      onAdded();
      if (data.private_key === undefined) onClose();
      else setGenerated(data);
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    add.mutate(new FormData(event.currentTarget));
  };

  if (generated?.private_key) {
    return (
      <Modal opened onClose={onClose} title="Your new key" closeOnClickOutside={false}>
        <Generated name={generated.name} pem={generated.private_key} onClose={onClose} />
      </Modal>
    );
  }
  return (
    <Modal opened onClose={onClose} title="Add an SSH key">
      <form onSubmit={submit}>
        <Stack>
          <SegmentedControl
            fullWidth
            aria-label="Where the key comes from"
            value={way}
            onChange={setWay}
            data={[
              { value: 'own', label: 'Paste mine' },
              { value: 'made', label: 'Make one for me' },
            ]}
          />
          <TextInput
            label="Name"
            name="name"
            required
            maxLength={64}
            withAsterisk={false}
            autoComplete="off"
            data-autofocus
          />
          {way === 'own' ? (
            <Textarea
              label="Public key"
              description="Usually the one line in ~/.ssh/id_ed25519.pub"
              placeholder="ssh-ed25519 AAAA…"
              name="public_key"
              required
              withAsterisk={false}
              autosize
              minRows={3}
              maxRows={8}
              spellCheck={false}
            />
          ) : (
            <Text size="sm" c="dimmed">
              The server makes a 3072-bit RSA pair, keeps the public half, and hands you the private
              half once, as a .pem file.
            </Text>
          )}
          <ErrorNotice error={add.error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={add.isPending}>
              {way === 'own' ? 'Add the key' : 'Make the key'}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

function Generated({ name, pem, onClose }: { name: string; pem: string; onClose: () => void }) {
  const [saved, setSaved] = useState(false);
  const file = toPemName(name);
  return (
    <Stack>
      <Alert variant="default">
        Download the private half now: the server has not kept it and can’t show it again.
      </Alert>
      <Button
        onClick={() => {
          download(file, pem);
          setSaved(true);
        }}
      >
        Download {file}
      </Button>
      <Text size="sm">ssh only takes a key file that others can’t read:</Text>
      <pre className="code-block">
        <code>{`chmod 400 ${file}\nssh -i ${file} ubuntu@<machine>`}</code>
      </pre>
      <Group justify="flex-end">
        <Button variant="default" onClick={onClose} disabled={!saved}>
          Done
        </Button>
      </Group>
    </Stack>
  );
}
