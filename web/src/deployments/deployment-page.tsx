// One deployment: its settings, its replicas, and the log of its engine.

import { Anchor, Button, Group, Skeleton } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, Redirect, useLocation } from 'wouter';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import { ApiError, post } from '../api.ts';
import { EmptyState } from '../components/empty-state.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Page } from '../components/page.tsx';
import { useDelete } from '../components/use-delete.tsx';
import { useMe } from '../current-user.ts';
import { DeployDialog } from './deploy-dialog.tsx';
import { DeploymentCost } from './deployment-cost.tsx';
import { DeploymentFacts } from './deployment-facts.tsx';
import { DeploymentStatus } from './deployment-status.tsx';
import {
  deploymentsKey,
  newDeploymentPath,
  toApiPath,
  toDeploymentKey,
  useDeployment,
} from './deployments.ts';
import { EngineLog } from './engine-log.tsx';
import { Replicas } from './replicas.tsx';

type Action = 'stop' | 'start' | 'rollback';

export default function DeploymentPage({ name }: { name: string }) {
  const { canManage } = useMe();
  const client = useQueryClient();
  const query = useDeployment(name);
  const act = useMutation({
    mutationFn: (action: Action) => post(`${toApiPath(name)}/${action}`),
    onSuccess: () => client.invalidateQueries({ queryKey: toDeploymentKey(name) }),
  });
  if (query.error instanceof ApiError && query.error.status === 404) {
    // The address that people type. A deployment may have this name, too.
    return name === 'new' ? <Redirect to={newDeploymentPath} replace /> : <GoneDeployment />;
  }
  const deployment = query.data?.data;
  return (
    <Page
      title={name}
      status={
        deployment && (
          <div data-stale={query.error ? true : undefined}>
            <DeploymentStatus deployment={deployment} />
          </div>
        )
      }
      actions={
        canManage &&
        deployment && (
          <Actions deployment={deployment} isActing={act.isPending} onChoose={act.mutate} />
        )
      }
    >
      <ErrorNotice error={query.error} onRetry={() => query.refetch()} />
      <ErrorNotice error={act.error} />
      {query.isPending && <Skeleton h={320} aria-busy="true" />}
      {deployment && (
        <div className="stack" data-stale={query.error ? true : undefined}>
          <DeploymentFacts deployment={deployment} />
          <Replicas deployment={deployment} />
          <DeploymentCost name={name} />
          {canManage && <EngineLog deployment={deployment} />}
        </div>
      )}
    </Page>
  );
}

interface ActionsProps {
  deployment: DeploymentView;
  isActing: boolean;
  onChoose: (action: Action) => void;
}

function Actions({ deployment, isActing, onChoose }: ActionsProps) {
  const [, navigate] = useLocation();
  const [isEditing, setIsEditing] = useState(false);
  const removal = useDelete<DeploymentView>({
    action: 'Remove',
    nameOf: ({ name }) => name,
    warning: () =>
      'Running requests finish, then its engines are stopped. Its settings are deleted.',
    pathOf: ({ name }) => toApiPath(name),
    queryKeys: [deploymentsKey],
    doneMessage: ({ name }) => `Deployment “${name}” removed.`,
    onDeleted: () => navigate('/deployments'),
  });
  const isStopped = deployment.status === 'stopped' || deployment.status === 'stopping';
  return (
    <Group gap="xs">
      <Button
        variant="default"
        loading={isActing}
        onClick={() => onChoose(isStopped ? 'start' : 'stop')}
      >
        {isStopped ? 'Start' : 'Stop'}
      </Button>
      {deployment.status === 'failed' && (
        <Button variant="default" loading={isActing} onClick={() => onChoose('start')}>
          Try again
        </Button>
      )}
      {deployment.can_roll_back && (
        <Button variant="default" loading={isActing} onClick={() => onChoose('rollback')}>
          Roll back
        </Button>
      )}
      {!deployment.in_file && (
        <>
          <Button variant="default" onClick={() => setIsEditing(true)}>
            Edit
          </Button>
          <Button variant="default" onClick={() => removal.ask(deployment)}>
            Remove
          </Button>
        </>
      )}
      {isEditing && (
        <DeployDialog
          deployment={deployment}
          onSaved={() => setIsEditing(false)}
          onClose={() => setIsEditing(false)}
        />
      )}
      {removal.dialog}
    </Group>
  );
}

const GoneDeployment = () => (
  <Page title="Deployment">
    <EmptyState
      title="This deployment is gone"
      art="chip"
      action={
        <Anchor component={Link} href="/deployments" underline="always">
          All deployments
        </Anchor>
      }
    >
      It was removed, or it never existed. What happened to it is kept in the audit log.
    </EmptyState>
  </Page>
);
