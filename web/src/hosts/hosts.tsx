// Hosts: the servers that machines run on, what of each is taken and by whom, and adding more.

import { Button, Code, Skeleton, Stack } from '@mantine/core';
import { Link, useLocation } from 'wouter';
import { EmptyState } from '../components/data-table.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Page } from '../components/page.tsx';
import { useMe } from '../current-user.ts';
import { useInstances } from '../machines/instances.ts';
import { AddHostDialog } from './add-host-dialog.tsx';
import { HostCard } from './host-card.tsx';
import { useHosts } from './hosts.ts';
import './hosts.css';

export default function Hosts() {
  const { canManage } = useMe();
  const [location, navigate] = useLocation();
  const hosts = useHosts();
  // Machines come and go by events, and with them who has which GPU.
  const instances = useInstances();
  const names = new Map(instances.data?.data.map(({ id, name }) => [id, name ?? id.slice(0, 8)]));
  const add = (
    <Button component={Link} href="/hosts/new">
      Add a host
    </Button>
  );
  const rows = hosts.data?.data;
  return (
    <Page
      title="Hosts"
      description="The servers that machines run on. A launch goes to a host in its region that has room."
      actions={canManage && rows?.length !== 0 && add}
    >
      {hosts.isPending && <Skeleton h={240} aria-busy="true" />}
      <ErrorNotice error={hosts.error} onRetry={() => hosts.refetch()} />
      {rows?.length === 0 && (
        <EmptyState title="No hosts" action={canManage && add}>
          Machines need a server to run on. Any Linux server with Incus or LXD will do; it is added
          with a token that <Code>incus config trust add</Code> prints.
        </EmptyState>
      )}
      <Stack>
        {rows?.map((host) => (
          <HostCard key={host.id} host={host} nameOf={(id) => names.get(id) ?? null} />
        ))}
      </Stack>
      {canManage && location === '/hosts/new' && (
        <AddHostDialog onClose={() => navigate('/hosts')} />
      )}
    </Page>
  );
}
