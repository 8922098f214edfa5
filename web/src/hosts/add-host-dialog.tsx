// Adds a host: by a token that its own command line prints, or by an address that trusts us already.

import {
  Button,
  Group,
  Modal,
  SegmentedControl,
  Select,
  SimpleGrid,
  Stack,
  Text,
  TextInput,
} from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { HostView, NewHost } from '#cloud/hosts/schema.ts';
import { post } from '../api.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { useRegions } from '../regions.ts';
import { hostsKey, hostsPath } from './hosts.ts';

const ways = [
  { value: 'incus', label: 'Incus' },
  { value: 'lxd', label: 'LXD' },
  { value: 'address', label: 'By its address' },
] as const;
type Way = (typeof ways)[number]['value'];

/** What its operator runs there; the last line prints the token. */
const commands = {
  incus: 'incus config set core.https_address :8443\nincus config trust add millrace',
  lxd: 'lxc config set core.https_address :8443\nlxc config trust add --name millrace',
};

export function AddHostDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [way, setWay] = useState<Way>('incus');
  const regions = useRegions();
  const [chosen, setChosen] = useState<string | null>(null);
  const region = chosen ?? regions.home;
  const add = useMutation({
    mutationFn: (form: FormData) => post<HostView>(hostsPath, { region, ...toMembers(form) }),
    async onSuccess({ name }) {
      await client.invalidateQueries({ queryKey: hostsKey });
      notifications.show({ message: `The host “${name}” is added.` });
      onClose();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    add.mutate(new FormData(event.currentTarget));
  };
  return (
    <Modal opened onClose={onClose} title="Add a host" size="lg">
      <form onSubmit={submit}>
        <Stack>
          <SegmentedControl
            aria-label="What runs there"
            data={[...ways]}
            value={way}
            onChange={(value) => setWay(value as Way)}
          />
          {way === 'address' ? <AddressFields /> : <TokenFields command={commands[way]} />}
          <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
            <Field name="name" label="Name" description="Yours, e.g. rack-1." required />
            <Select
              label="Region"
              description="Launches there may go to it."
              data={regions.choices}
              value={region}
              onChange={setChosen}
              allowDeselect={false}
              searchable
            />
          </SimpleGrid>
          <MoreFields />
          <ErrorNotice error={add.error ?? regions.error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" loading={add.isPending} disabled={region === null}>
              Add
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

function TokenFields({ command }: { command: string }) {
  return (
    <>
      <div>
        <Text size="sm" mb={6}>
          1. On that server, as root:
        </Text>
        <div className="sample">
          <div className="sample-copy">
            <CopyButton value={command} label="Copy the commands" />
          </div>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines scroll, also by keyboard */}
          <pre className="code-block" tabIndex={0}>
            {command}
          </pre>
        </div>
      </div>
      <Field
        name="token"
        label="2. The token that the last command printed"
        description="It works once. It holds the server’s address and certificate, so nothing else is needed."
        required
      />
    </>
  );
}

const AddressFields = () => (
  <>
    <Field
      name="url"
      label="Address"
      description="Its socket on this machine, or its HTTPS address."
      placeholder="unix:/var/lib/incus/unix.socket or https://10.0.0.5:8443"
      required
    />
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
      <Field name="token" label="Token" placeholder="None, it trusts this server already" />
      <Field name="fingerprint" label="Fingerprint of its certificate" placeholder="Not checked" />
    </SimpleGrid>
  </>
);

/** Needed where a host is not set up the usual way; a check says so. */
const MoreFields = () => (
  <details>
    <summary>Its network, storage and cluster, if they are not the usual ones</summary>
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm" mt="sm">
      <Field name="network" label="Network" placeholder="The usual bridge" />
      <Field name="pool" label="Storage pool" placeholder="default" />
      <Field name="project" label="Project" placeholder="default" />
      <Field name="target" label="Member or @group of a cluster" placeholder="All of it" />
      <Field name="filesystems_path" label="Path of shared files" placeholder="None" />
    </SimpleGrid>
  </details>
);

const Field = (props: Parameters<typeof TextInput>[0]) => (
  <TextInput withAsterisk={false} autoComplete="off" {...props} />
);

const members = [
  'name',
  'token',
  'url',
  'fingerprint',
  'target',
  'pool',
  'network',
  'project',
  'filesystems_path',
] as const satisfies (keyof NewHost)[];

/** What was left empty is left out. */
const toMembers = (form: FormData) =>
  Object.fromEntries(
    members
      .map((name) => [name, String(form.get(name) ?? '').trim()] as const)
      .filter(([, value]) => value !== ''),
  );
