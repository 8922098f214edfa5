// What a machine is and how to reach it: the ssh command, addresses, cost, open ports, filesystems and tags.

import { Anchor, Code, Group, Paper, SimpleGrid, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import type { FirewallRule, Instance, InstanceDetail } from '#cloud/schema.ts';
import { toCounted, toHourlyPrice, toMoney } from '#lib/text/format.ts';
import { get, type List } from '../api.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { Fact } from '../components/facts.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { toRuleText } from '../firewall/rules.ts';
import { useRulesets } from '../queries.ts';
import { SshCommand } from './ssh-command.tsx';
import { TagBadges } from './tag-badges.tsx';

interface MachineFactsProps {
  instance: Instance;
  detail: InstanceDetail;
}

export const MachineFacts = ({ instance, detail }: MachineFactsProps) => (
  <Paper withBorder p="md">
    <Stack gap="md">
      <Fact name="Connect">
        <SshCommand instance={instance} detail={detail} />
      </Fact>
      <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="md" verticalSpacing="md">
        <Fact name="Size">
          {toCounted(detail.vcpus, 'vCPU')}, {detail.memory_gib} GiB memory, {detail.storage_gib}{' '}
          GiB disk
        </Fact>
        <Fact name="Cost so far">
          {toMoney(toDollars(detail))}{' '}
          <span className="muted">at {toHourlyPrice(detail.price_cents_per_hour)}</span>
        </Fact>
        <Fact name="Launched">
          <RelativeTime at={detail.launched_at} />
        </Fact>
        <Fact name="Address">
          {instance.ip === undefined ? (
            '–'
          ) : (
            <Copied value={instance.ip} label="Copy the address" />
          )}
        </Fact>
        <Fact name="Open ports">
          <OpenPorts instance={instance} />
        </Fact>
        <Fact name="Filesystems">
          <Filesystems instance={instance} />
        </Fact>
        <Fact name="SSH key">{instance.ssh_key_names.join(', ') || 'None'}</Fact>
        <Fact name="Tags">
          {instance.tags === undefined ? 'None' : <TagBadges tags={instance.tags} />}
        </Fact>
        <Fact name="ID">
          <Copied value={instance.id} label="Copy the ID" />
        </Fact>
      </SimpleGrid>
    </Stack>
  </Paper>
);

const Copied = ({ value, label }: { value: string; label: string }) => (
  <Group gap={4} wrap="nowrap">
    <Code className="breakable">{value}</Code>
    <CopyButton value={value} label={label} />
  </Group>
);

/** Whole seconds, as the usage page counts them. */
function toDollars({ launched_at, price_cents_per_hour }: InstanceDetail): number {
  const seconds = Math.floor((Date.now() - Date.parse(launched_at)) / 1000);
  return (Math.max(0, seconds) * price_cents_per_hour) / 3600 / 100;
}

/** The rules for all machines, and those of the machine's own rulesets. */
function OpenPorts({ instance }: { instance: Instance }) {
  const all = useQuery({
    queryKey: ['open-ports'],
    queryFn: () => get<List<FirewallRule>>('/api/v1/firewall-rules'),
  });
  const rulesets = useRulesets();
  if (all.data === undefined) return all.isError ? 'Unknown: the rules can’t be read.' : '…';
  const ids = new Set(instance.firewall_rulesets?.map(({ id }) => id));
  const own = rulesets.data?.data.filter(({ id }) => ids.has(id)) ?? [];
  const rules = [...all.data.data, ...own.flatMap((set) => set.rules as FirewallRule[])];
  const texts = [...new Set(rules.map(toRuleText))];
  return (
    <>
      {texts.length === 0 ? 'None: nothing from outside reaches it.' : texts.join('; ')}{' '}
      <Anchor component={Link} href="/firewall" size="sm" underline="always">
        Firewall
      </Anchor>
    </>
  );
}

function Filesystems({ instance }: { instance: Instance }) {
  const { file_system_names: names, file_system_mounts: mounts = [] } = instance;
  if (names.length === 0) return 'None';
  return names.map((name, index) => (
    <div key={name}>
      {name} <span className="muted">at {mounts[index]?.mount_point}</span>
    </div>
  ));
}
