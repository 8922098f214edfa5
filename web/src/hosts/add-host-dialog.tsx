// Adds a host, either with a token that its own command line prints or by the address of a host that already
// trusts this server.

import { SegmentedControl, SimpleGrid, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { HostView, NewHost } from '#cloud/hosts/schema.ts';
import { post } from '../api.ts';
import { toFieldText } from '../browser/form-data.ts';
import { Advanced } from '../components/advanced.tsx';
import { CodeBlock } from '../components/code-samples.tsx';
import { TextField } from '../components/fields.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { useRegionSelect } from '../components/use-region-select.tsx';
import { hostsKey, hostsPath } from './hosts.ts';

const methods = [
  { value: 'incus', label: 'Incus' },
  { value: 'lxd', label: 'LXD' },
  { value: 'address', label: 'By address' },
] as const;
type Method = (typeof methods)[number]['value'];

/** The commands to run on the host. The last one prints the token. */
const commands = {
  incus: 'incus config set core.https_address :8443\nincus config trust add millrace',
  lxd: 'lxc config set core.https_address :8443\nlxc config trust add --name millrace',
};

export function AddHostDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [method, setMethod] = useState<Method>('incus');
  const { region, field, error } = useRegionSelect({
    description: 'Launches in this region can use the host.',
  });
  async function add(form: FormData) {
    const { name } = await post<HostView>(hostsPath, { region, ...toMembers(form) });
    await client.invalidateQueries({ queryKey: hostsKey });
    notifications.show({ message: `Host “${name}” added.` });
    onClose();
  }
  return (
    <FormDialog
      title="Add host"
      action="Add host"
      size="lg"
      disabled={region === null}
      error={error}
      onSubmit={add}
      onClose={onClose}
    >
      <SegmentedControl
        aria-label="How to connect"
        data={[...methods]}
        value={method}
        onChange={(value) => setMethod(value as Method)}
      />
      {method === 'address' ? <AddressFields /> : <TokenFields command={commands[method]} />}
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <TextField
          name="name"
          label="Name"
          description="Your name for the host, e.g. rack-1."
          required
        />
        {field}
      </SimpleGrid>
      <AdvancedFields />
    </FormDialog>
  );
}

const TokenFields = ({ command }: { command: string }) => (
  <>
    <div>
      <Text size="sm" mb={6}>
        1. Run these commands on the host as root:
      </Text>
      <CodeBlock code={command} copyLabel="Copy commands" />
    </div>
    <TextField
      name="token"
      label="2. Paste the token that the last command printed"
      description="The token works once. It contains the host’s address and certificate, so nothing else is needed."
      required
    />
  </>
);

const AddressFields = () => (
  <>
    <TextField
      name="url"
      label="Address"
      description="A socket on this machine, or an HTTPS address."
      placeholder="unix:/var/lib/incus/unix.socket or https://10.0.0.5:8443"
      required
    />
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
      <TextField name="token" label="Token" placeholder="None if the host trusts this server" />
      <TextField name="fingerprint" label="Certificate fingerprint" placeholder="Not checked" />
    </SimpleGrid>
  </>
);

/** Needed only if the host does not use the defaults; a host check reports what is missing. */
const AdvancedFields = () => (
  <Advanced about="network, storage and cluster">
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
      <TextField name="network" label="Network" placeholder="Default bridge" />
      <TextField name="ovn_uplink" label="OVN uplink" placeholder="None" />
      <TextField name="pool" label="Storage pool" placeholder="default" />
      <TextField name="project" label="Project" placeholder="default" />
      <TextField name="target" label="Cluster member or @group" placeholder="All members" />
      <TextField name="filesystems_path" label="Path of shared filesystems" placeholder="None" />
    </SimpleGrid>
  </Advanced>
);

const members = [
  'name',
  'token',
  'url',
  'fingerprint',
  'target',
  'pool',
  'network',
  'ovn_uplink',
  'project',
  'filesystems_path',
] as const satisfies (keyof NewHost)[];

/** The fields of the form; empty ones are omitted. */
const toMembers = (form: FormData) =>
  Object.fromEntries(
    members.map((name) => [name, toFieldText(form, name)]).filter(([, value]) => value !== ''),
  );
