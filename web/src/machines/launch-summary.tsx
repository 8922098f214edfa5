// What a launch costs, and the same launch as commands to copy.

import { Group, Stack, Tabs, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { InstanceType } from '#cloud/schema.ts';
import { toCounted, toHourlyPrice, toMoney } from '#lib/text/format.ts';
import { CodeBlock } from '../components/code-samples.tsx';
import { findMissing, type LaunchChoice, toLaunch } from './launch-choice.ts';
import { formats, toLaunchCommands } from './launch-code.ts';

interface LaunchSummaryProps {
  /** Undefined until a type is chosen. */
  type: InstanceType | undefined;
  choice: LaunchChoice;
  /** The button that launches. */
  children: ReactNode;
}

const hoursPerMonth = 730;

export function LaunchSummary({ type, choice, children }: LaunchSummaryProps) {
  const cents = (type?.price_cents_per_hour ?? 0) * choice.count;
  return (
    <Stack gap="sm">
      {type && (
        <div>
          <Text size="xs" c="dimmed">
            {choice.count} × {type.name}
          </Text>
          <Group gap="xs" align="baseline">
            <Text className="launch-price">{toHourlyPrice(cents)}</Text>
            <Text size="xs" c="dimmed">
              about {toMoney((cents * hoursPerMonth) / 100)} a month
            </Text>
          </Group>
          <Text size="sm">
            {toCounted(type.specs.vcpus, 'vCPU')}, {type.specs.memory_gib} GiB memory,{' '}
            {type.specs.storage_gib} GiB disk
            {type.specs.gpus > 0 && `, ${type.specs.gpus} × ${type.gpu_description}`}
          </Text>
        </div>
      )}
      {children}
      {findMissing(choice) === null && <CopyAs choice={choice} />}
    </Stack>
  );
}

/** The commands launch one machine. */
function CopyAs({ choice }: { choice: LaunchChoice }) {
  const commands = toLaunchCommands(window.location.origin, toLaunch(choice));
  return (
    <div>
      <Text size="sm" fw={600} mb={4}>
        Copy as
      </Text>
      <Tabs defaultValue="CLI" keepMounted={false}>
        <Tabs.List mb="xs">
          {formats.map((format) => (
            <Tabs.Tab key={format} value={format}>
              {format}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {formats.map((format) => (
          <Tabs.Panel key={format} value={format}>
            <CodeBlock code={commands[format]} copyLabel={`Copy as ${format}`} />
          </Tabs.Panel>
        ))}
      </Tabs>
      {choice.count > 1 && (
        <Text size="xs" c="dimmed" mt={4}>
          Each of these launches one machine. Run it {choice.count} times.
        </Text>
      )}
    </div>
  );
}
