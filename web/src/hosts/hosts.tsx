// Hosts: the servers that machines run on, what each has free, and adding more.

import { Button, Code, Skeleton, Stack } from '@mantine/core';
import { Link, useLocation } from 'wouter';
import { EmptyState } from '../components/empty-state.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Page } from '../components/page.tsx';
import { useMe } from '../current-user.ts';
import { nameOf, useInstances } from '../machines/instances.ts';
import { AddHostDialog } from './add-host-dialog.tsx';
import { HostCard } from './host-card.tsx';
import { useHosts } from './hosts.ts';
import './hosts.css';

export default function Hosts() {
  const { canManage } = useMe();
  const [location, navigate] = useLocation();
  const hosts = useHosts();
  // Refreshed by events, so the machine behind each GPU is current.
  const instances = useInstances();
  const names = new Map(instances.data?.data.map((instance) => [instance.id, nameOf(instance)]));
  const add = (
    <Button component={Link} href="/hosts/new">
      Add host
    </Button>
  );
  const rows = hosts.data?.data;
  return (
    <Page
      title="Hosts"
      description="The servers that machines run on. A launch goes to a host in its region that has capacity."
      actions={canManage && rows?.length !== 0 && add}
    >
      {hosts.isPending && <Skeleton h={240} aria-busy="true" />}
      <ErrorNotice error={hosts.error} onRetry={() => hosts.refetch()} />
      {rows?.length === 0 && (
        <EmptyState
          title="No hosts"
          art="rack"
          action={canManage && add}
          command="millrace hosts add --help"
        >
          Machines need a server to run on. Any Linux server with Incus or LXD works. Add it with
          the token that <Code>incus config trust add</Code> prints.
        </EmptyState>
      )}
      <Stack data-stale={hosts.error ? true : undefined}>
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
