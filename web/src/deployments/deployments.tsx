// Deployments: models whose engines the server starts when requests come and stops when they are idle.

import { Button } from '@mantine/core';
import { Link, useLocation } from 'wouter';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import { toCount } from '#lib/text/format.ts';
import { useUrlState } from '../browser/url-state.ts';
import { type Column, DataTable, NameCell } from '../components/data-table.tsx';
import { EmptyState } from '../components/empty-state.tsx';
import { Page } from '../components/page.tsx';
import { useMe } from '../current-user.ts';
import { DeployDialog } from './deploy-dialog.tsx';
import { DeploymentStatus } from './deployment-status.tsx';
import {
  countReady,
  engineNames,
  newDeploymentPath,
  toDeploymentPath,
  useDeployments,
} from './deployments.ts';

export default function Deployments() {
  const { canManage } = useMe();
  const [location, navigate] = useLocation();
  const initialModel = useUrlState(newDeploymentPath).get('model');
  const deployments = useDeployments();
  const deploy = canManage && (
    <Button component={Link} href={newDeploymentPath}>
      Deploy model
    </Button>
  );
  return (
    <Page
      title="Deployments"
      description="Engines that this server starts with the first request and stops when they are idle."
      actions={deployments.data?.data.length !== 0 && deploy}
    >
      <DataTable
        label="Deployments"
        query={deployments}
        rows={deployments.data?.data}
        columns={columns}
        skeletonLines={2}
        empty={
          <EmptyState
            title="No deployments yet"
            art="chip"
            action={deploy}
            command="millrace deploy llama3.1-8b-instruct --engine vllm"
          >
            A deployment runs vLLM, SGLang, llama-server or another engine on this server. It starts
            with the first request, adds replicas under load, and frees the GPU when it is idle.
            {!canManage && ' Only owners can deploy models.'}
          </EmptyState>
        }
      />
      {canManage && location === newDeploymentPath && (
        <DeployDialog
          key={initialModel}
          deployment={null}
          initialModel={initialModel}
          onSaved={(name) => navigate(toDeploymentPath(name))}
          onClose={() => navigate('/deployments')}
        />
      )}
    </Page>
  );
}

const columns: Column<DeploymentView>[] = [
  {
    name: 'Name',
    value: ({ name }) => name,
    cell: ({ name }) => <NameCell name={name} href={toDeploymentPath(name)} />,
  },
  {
    name: 'Model',
    value: ({ model }) => model,
    cell: ({ model }) => <span className="breakable">{model}</span>,
  },
  {
    name: 'Engine',
    filter: true,
    value: ({ engine }) => engineNames[engine],
    cell: ({ engine }) => engineNames[engine],
  },
  {
    name: 'Status',
    filter: true,
    value: ({ status }) => status,
    cell: (deployment) => <DeploymentStatus deployment={deployment} />,
  },
  {
    name: 'Replicas',
    isNumber: true,
    value: countReady,
    cell: (deployment) => `${countReady(deployment)} of ${deployment.max}`,
  },
  {
    name: 'Running',
    isNumber: true,
    value: ({ running }) => running,
    cell: ({ running }) => toCount(running),
  },
  {
    name: 'Waiting',
    isNumber: true,
    value: ({ waiting }) => waiting,
    cell: ({ waiting }) => toCount(waiting),
  },
];
