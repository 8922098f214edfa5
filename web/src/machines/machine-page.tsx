// One machine: live graphs, how to connect, what happened to it, its boot log and a terminal.

import { Anchor, Button, Group, Skeleton, Tabs } from '@mantine/core';
import { lazy, Suspense, useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { Instance, InstanceDetail } from '#cloud/schema.ts';
import { EmptyState } from '../components/empty-state.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Page } from '../components/page.tsx';
import { Section } from '../components/section.tsx';
import { useMe } from '../current-user.ts';
import { BootLog } from './boot-log.tsx';
import { nameOf, useDetails, useInstances } from './instances.ts';
import { MachineDialog } from './machine-dialogs.tsx';
import { MachineEvents } from './machine-events.tsx';
import { MachineFacts } from './machine-facts.tsx';
import { type MachineAction, MachineMenu } from './machine-menu.tsx';
import { MachineStatus } from './machine-status.tsx';
import './machines.css';

const MachineGraphs = lazy(() => import('./machine-graphs.tsx'));
const Terminal = lazy(() => import('../terminal/terminal.tsx'));

const tabs = [
  { value: 'overview', label: 'Overview' },
  { value: 'terminal', label: 'Terminal' },
  { value: 'events', label: 'Events' },
  { value: 'boot-log', label: 'Boot log' },
];

/** Nobody can log in to a machine of a deployment, and its log is on the page of the deployment. */
const toTabs = (detail: InstanceDetail | undefined) =>
  detail?.deployment == null
    ? tabs
    : tabs.filter(({ value }) => value === 'overview' || value === 'events');

export default function MachinePage({ params }: { params: { id: string; tab?: string } }) {
  const { id, tab = 'overview' } = params;
  const { canUse } = useMe();
  const [, navigate] = useLocation();
  const instances = useInstances();
  const detail = useDetails().get(id);
  const instance = instances.data?.data.find((one) => one.id === id);
  const shown = tabs.some(({ value }) => value === tab) ? tab : 'overview';
  if (instances.isPending) return <Skeleton h={320} aria-busy="true" />;
  if (instance === undefined && instances.data !== undefined && shown !== 'terminal') {
    return <GoneMachine id={id} />;
  }
  return (
    <Page
      title={instance ? nameOf(instance) : 'Machine'}
      description={instance && `${instance.instance_type.description} in ${instance.region.name}`}
      status={
        instance && (
          <div data-stale={instances.error ? true : undefined}>
            <MachineStatus instance={instance} detail={detail} />
          </div>
        )
      }
      actions={instance && <Actions instance={instance} canUse={canUse} />}
    >
      <ErrorNotice error={instances.error} onRetry={() => instances.refetch()} />
      <Tabs
        value={shown}
        onChange={(value) => navigate(`/machines/${id}${value === 'overview' ? '' : `/${value}`}`)}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          {toTabs(detail).map(({ value, label }) => (
            <Tabs.Tab key={value} value={value}>
              {label}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Suspense fallback={<Skeleton h={320} aria-busy="true" />}>
          <Tabs.Panel value="overview">
            {instance && <Overview instance={instance} detail={detail} />}
          </Tabs.Panel>
          <Tabs.Panel value="terminal">
            <Terminal key={id} instance={canUse ? instance : undefined} />
          </Tabs.Panel>
          <Tabs.Panel value="events">
            <MachineEvents id={id} instance={instance} detail={detail} />
          </Tabs.Panel>
          <Tabs.Panel value="boot-log">{instance && <BootLog instance={instance} />}</Tabs.Panel>
        </Suspense>
      </Tabs>
    </Page>
  );
}

interface OverviewProps {
  instance: Instance;
  /** Undefined while the details load. */
  detail: InstanceDetail | undefined;
}

function Overview({ instance, detail }: OverviewProps) {
  if (detail === undefined) return <Skeleton h={320} aria-busy="true" />;
  return (
    <div className="stack">
      <MachineFacts instance={instance} detail={detail} />
      <Section title="Live" description="The last five minutes, while this page is open.">
        <MachineGraphs id={instance.id} detail={detail} />
      </Section>
    </div>
  );
}

function Actions({ instance, canUse }: { instance: Instance; canUse: boolean }) {
  const [action, setAction] = useState<MachineAction | null>(null);
  return (
    <Group gap="xs" wrap="nowrap">
      {canUse && (
        <Button
          variant="default"
          disabled={!instance.actions.restart.available}
          onClick={() => setAction('restart')}
        >
          Restart
        </Button>
      )}
      <MachineMenu instance={instance} canUse={canUse} onChoose={setAction} />
      {action && (
        <MachineDialog action={action} instances={[instance]} onClose={() => setAction(null)} />
      )}
    </Group>
  );
}

const GoneMachine = ({ id }: { id: string }) => (
  <Page title="Machine">
    <EmptyState
      title="This machine is gone"
      action={
        <Anchor component={Link} href="/machines" underline="always">
          All machines
        </Anchor>
      }
    >
      It was terminated, or it never existed in this account. What happened to it is kept in the
      audit log.
    </EmptyState>
    <Section title="Events">
      <MachineEvents id={id} instance={undefined} detail={undefined} />
    </Section>
  </Page>
);
