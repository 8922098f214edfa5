// The model ids that programs can ask for, what answers for each of them and how well, and getting more.

import { Button, Group, Menu, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { BackendView } from '../../../src/inference/backends/schema.ts';
import type { ModelWeights } from '../../../src/inference/weights/schema.ts';
import { useMe } from '../account.ts';
import { CopyIcon } from '../parts/copy.tsx';
import { ErrorNotice } from '../parts/error-notice.tsx';
import { toCount, toCounted, toMoney } from '../parts/numbers.ts';
import { Page } from '../parts/page.tsx';
import { type Column, Empty, Records } from '../parts/records.tsx';
import { AddBackendDialog } from './add-backend.tsx';
import { BackendLine } from './backend-line.tsx';
import { useBackendTasks } from './backend-tasks.tsx';
import { useBackends } from './backends.ts';
import { toDefaultModel, useModels } from './list.ts';
import { PullDialog } from './pull-dialog.tsx';
import { Pulls } from './pulls.tsx';
import { StoredWeightsList } from './stored-weights.tsx';
import { isLive, toShortName, useWeights } from './weights.ts';
import './models.css';

export default function Models() {
  const { canUse, canManage } = useMe();
  const [location, navigate] = useLocation();
  const [wanted, setWanted] = useState<string | null>(null);
  const listed = useModels();
  const weights = useWeights();
  const backends = useBackends();
  const tasks = useBackendTasks();
  const overview = weights.data;
  const pulledIds = new Set(overview?.pulls.filter(isLive).map(({ model }) => model));
  const byModel = Map.groupBy(backends.data?.data ?? [], ({ model }) => model);

  function open(dialog: 'pull' | 'add-backend', model: string | null) {
    setWanted(model);
    navigate(`/models/${dialog}`);
  }
  const close = () => navigate('/models');

  const columns: Column<ModelWeights>[] = [
    { name: 'Model id', cell: (model) => <ModelId model={model} /> },
    {
      name: 'Answered by',
      cell: (model) => (
        <Stack gap="xs" className="backends">
          {(byModel.get(model.id) ?? []).map((backend) => (
            <BackendLine
              key={backend.id}
              backend={backend}
              name={toBackendName(backend, model)}
              canManage={canManage}
              onChoose={(task) => tasks.choose(backend, task)}
            />
          ))}
          <Queue backends={byModel.get(model.id)} />
        </Stack>
      ),
    },
  ];
  if (canUse) {
    columns.push({
      name: '',
      cell: ({ id, weights: served }) => (
        <More
          model={id}
          pull={pulledIds.has(id) ? 'being pulled' : served === null ? null : 'already here'}
          canManage={canManage}
          onChoose={(dialog) => open(dialog, id)}
        />
      ),
    });
  }

  return (
    <Page
      title="Models"
      description={`What a request may name as its model, e.g. "model": "${toDefaultModel(listed.data?.data)}".`}
      actions={
        canUse && (
          <Group>
            {canManage && (
              <Button variant="default" onClick={() => open('add-backend', null)}>
                Add a backend
              </Button>
            )}
            <Button onClick={() => open('pull', null)}>Pull weights</Button>
          </Group>
        )
      }
    >
      {overview && <Pulls overview={overview} canUse={canUse} />}
      <ErrorNotice error={tasks.error ?? backends.error} />
      <Records
        label="Models"
        query={weights}
        // Both or neither: lines that come later would push the list around.
        rows={backends.isPending ? undefined : overview?.models}
        columns={columns}
        likely={8}
        empty={
          <Empty title="No models">
            The configuration names no models, so there is nothing that requests could ask for.
          </Empty>
        }
      />
      {overview && <StoredWeightsList weights={overview.data} canUse={canUse} />}
      {canUse && overview && location === '/models/pull' && (
        <PullDialog models={overview.models} wanted={wanted} onClose={close} />
      )}
      {canManage && overview && location === '/models/add-backend' && (
        <AddBackendDialog
          models={overview.models.map(({ id }) => id)}
          wanted={wanted}
          onClose={close}
        />
      )}
      {tasks.dialog}
    </Page>
  );
}

const ModelId = ({ model }: { model: ModelWeights }) => (
  <div>
    <Group gap={4} wrap="nowrap">
      <Text size="sm" ff="monospace" className="breakable">
        {model.id}
      </Text>
      <CopyIcon value={model.id} label={`Copy ${model.id}`} />
    </Group>
    <Text size="xs" c="dimmed">
      {model.owned_by} · {toCount(model.context_window)} tokens of context
    </Text>
    <Text size="xs" c="dimmed">
      {toMoney(model.price.input)} in, {toMoney(model.price.output)} out per million tokens
    </Text>
  </div>
);

/** Weights are known by their file, anything else by the name that its owner gave it. */
const toBackendName = (backend: BackendView, { weights }: ModelWeights) =>
  backend.kind === 'weights' && weights !== null ? toShortName(weights) : backend.name;

function Queue({ backends = [] }: { backends: BackendView[] | undefined }) {
  const queued = backends[0]?.queued ?? 0;
  if (queued === 0) return null;
  return <Text size="xs">{toCounted(queued, 'request')} waiting for a free place.</Text>;
}

interface MoreProps {
  model: string;
  /** Why weights can't be pulled now; null when they can. */
  pull: string | null;
  canManage: boolean;
  onChoose: (dialog: 'pull' | 'add-backend') => void;
}

const More = ({ model, pull, canManage, onChoose }: MoreProps) => (
  <Menu position="bottom-end" withinPortal>
    <Menu.Target>
      <Button variant="default" size="xs" aria-label={`Add to ${model}`}>
        Add
      </Button>
    </Menu.Target>
    <Menu.Dropdown maw={280}>
      <Menu.Item disabled={pull !== null} onClick={() => onChoose('pull')}>
        Pull weights
        {pull && <Text size="xs">They are {pull}.</Text>}
      </Menu.Item>
      <Menu.Item disabled={!canManage} onClick={() => onChoose('add-backend')}>
        Add a backend
        {!canManage && <Text size="xs">Only an owner can.</Text>}
      </Menu.Item>
    </Menu.Dropdown>
  </Menu>
);
