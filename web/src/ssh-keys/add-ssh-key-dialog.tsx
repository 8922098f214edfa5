// Adds a public key, or generates a key pair and offers the private key for download once.

import { Alert, Button, Group, SegmentedControl, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { NewSshKey, SshKey } from '#cloud/schema.ts';
import { post } from '../api.ts';
import { download, toPemName } from '../browser/download.ts';
import { toFieldText } from '../browser/form-data.ts';
import { TextareaField, TextField } from '../components/fields.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { GuardedModal, unsavedSecret } from '../components/leave-guard.tsx';
import { KeepKey } from './keep-key.tsx';

interface AddSshKeyDialogProps {
  onAdded: () => void;
  onClose: () => void;
}

export function AddSshKeyDialog({ onAdded, onClose }: AddSshKeyDialogProps) {
  const [source, setSource] = useState('paste');
  const [generated, setGenerated] = useState<SshKey | null>(null);
  async function add(form: FormData) {
    const body: NewSshKey = { name: String(form.get('name')) };
    if (source === 'paste') body.public_key = toFieldText(form, 'public_key');
    const { data } = await post<{ data: SshKey }>('/api/v1/ssh-keys', body);
    onAdded();
    if (data.private_key === undefined) onClose();
    else setGenerated(data);
  }
  if (generated?.private_key) {
    return (
      <GeneratedKey name={generated.name} privateKey={generated.private_key} onClose={onClose} />
    );
  }
  return (
    <FormDialog
      title="Add SSH key"
      action={source === 'paste' ? 'Add SSH key' : 'Generate SSH key'}
      onSubmit={add}
      onClose={onClose}
    >
      <SegmentedControl
        fullWidth
        aria-label="Source of the key"
        value={source}
        onChange={setSource}
        data={[
          { value: 'paste', label: 'Paste a public key' },
          { value: 'generate', label: 'Generate a key pair' },
        ]}
      />
      <TextField label="Name" name="name" required maxLength={64} data-autofocus />
      {source === 'paste' ? (
        <TextareaField
          label="Public key"
          description="Usually the single line in ~/.ssh/id_ed25519.pub"
          placeholder="ssh-ed25519 AAAA…"
          name="public_key"
          required
          minRows={3}
          spellCheck={false}
        />
      ) : (
        <Text size="sm" c="dimmed">
          The server generates a 3072-bit RSA key pair, keeps the public key, and gives you the
          private key once, as a .pem file.
        </Text>
      )}
    </FormDialog>
  );
}

interface GeneratedKeyProps {
  name: string;
  privateKey: string;
  onClose: () => void;
}

function GeneratedKey({ name, privateKey, onClose }: GeneratedKeyProps) {
  const [saved, setSaved] = useState(false);
  const file = toPemName(name);
  const save = () => {
    download(file, privateKey);
    setSaved(true);
  };
  return (
    <GuardedModal
      guard={{ ...unsavedSecret('private key'), unsaved: !saved }}
      onClose={onClose}
      title="Your new SSH key"
      closeOnClickOutside={false}
    >
      {(close) => (
        <Stack>
          <Alert variant="default">
            Download the private key now. The server does not keep it and can’t show it again.
          </Alert>
          <Button onClick={save}>Download {file}</Button>
          <KeepKey name={name} />
          <Group justify="flex-end">
            <Button variant="default" onClick={close} disabled={!saved}>
              Done
            </Button>
          </Group>
        </Stack>
      )}
    </GuardedModal>
  );
}
