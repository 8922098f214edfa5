// The ssh command of a machine, with the chmod that a downloaded key needs. A machine of a deployment has none.

import { Anchor, Code, Group, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { Instance, InstanceDetail } from '#cloud/schema.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { toDeploymentPath } from '../deployments/deployments.ts';
import { findKeyFile, nameOf, toSshCommand } from './instances.ts';

interface SshCommandProps {
  instance: Instance;
  /** Undefined while the details load. */
  detail: InstanceDetail | undefined;
  /** True if there is only room for the command. */
  brief?: boolean;
}

export function SshCommand({ instance, detail, brief = false }: SshCommandProps) {
  if (instance.ssh_key_names.length === 0) return <EngineLink deployment={detail?.deployment} />;
  const keyFile = findKeyFile(instance, detail);
  const command = toSshCommand(instance, keyFile);
  if (command === null || instance.status !== 'active') {
    return (
      <Text size="sm" c="dimmed">
        Once it is active
      </Text>
    );
  }
  const line = (
    <Group gap={4} wrap="nowrap">
      <Code className="breakable">{command}</Code>
      <CopyButton
        value={keyFile === undefined ? command : `chmod 600 ${keyFile} && ${command}`}
        label={`Copy the ssh command of ${nameOf(instance)}`}
      />
    </Group>
  );
  if (brief) return line;
  return (
    <div>
      {line}
      <Text size="xs" c="dimmed" className="breakable">
        {keyFile === undefined
          ? `Uses key “${instance.ssh_key_names[0]}”. If ssh can’t find the private key, add -i and its path.`
          : 'Copying adds the chmod that ssh requires for a downloaded key.'}
      </Text>
      {/* Without a network, a machine's private address is its public one. */}
      {instance.private_ip !== undefined && instance.private_ip !== instance.ip && (
        <Text size="xs" c="dimmed">
          Private IP, for your other machines: {instance.private_ip}
        </Text>
      )}
    </div>
  );
}

const EngineLink = ({ deployment }: { deployment: string | null | undefined }) => (
  <Text size="sm">
    Runs the engine of{' '}
    {deployment == null ? (
      'a deployment'
    ) : (
      <Anchor component={Link} href={toDeploymentPath(deployment)} size="sm" underline="always">
        {deployment}
      </Anchor>
    )}
  </Text>
);
