// The model IDs that requests can use, the backends of each, and adding backends and weights.

import { Anchor, Button, Group, Menu, Stack, Text } from '@mantine/core';
import { Link, useLocation } from 'wouter';
import type { BackendView } from '#inference/backends/schema.ts';
import type { ModelWeights } from '#inference/weights/schema.ts';
import { toCount, toCounted, toMoney } from '#lib/text/format.ts';
import { useUrlState } from '../browser/url-state.ts';
import { CopyButton } from '../components/copy-button.tsx';
import { type Column, DataTable } from '../components/data-table.tsx';
import { EmptyState } from '../components/empty-state.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Page } from '../components/page.tsx';
import { useMe } from '../current-user.ts';
import { AddBackendDialog } from './add-backend-dialog.tsx';
import { BackendRow } from './backend-row.tsx';
import { noBackendText, toBackendName, toModelPath, useBackends, useStandIns } from './backends.ts';
import { PullDialog } from './pull-dialog.tsx';
import { Pulls } from './pulls.tsx';
import { StoredWeightsList } from './stored-weights.tsx';
import { useBackendActions } from './use-backend-actions.tsx';
import { toDefaultModel, useChatModels } from './use-models.ts';
import { isLive, useWeights } from './weights.ts';
import './models.css';

export default function Models() {
  const { canUse, canManage } = useMe();
  const [location, navigate] = useLocation();
  const dialog = location.split('/')[2];
  const initialModel = useUrlState(`/models/${dialog}`).get('model');
  const chats = useChatModels();
  const weights = useWeights();
  const backends = useBackends();
  const standIns = useStandIns();
  const actions = useBackendActions();
  const overview = weights.data;
  const pulledIds = new Set(overview?.pulls.filter(isLive).map(({ model }) => model));
  const byModel = Map.groupBy(backends.data?.data ?? [], ({ model }) => model);

  const open = (name: 'pull' | 'add-backend', model: string | null) =>
    navigate(`/models/${name}${model === null ? '' : `/${new URLSearchParams({ model })}`}`);
  const close = () => navigate('/models');

  const columns: Column<ModelWeights>[] = [
    {
      name: 'Model ID',
      value: ({ id, owned_by, aliases }) => `${id} ${owned_by} ${aliases.join(' ')}`,
      cell: (model) => <ModelId model={model} />,
    },
    {
      name: 'Context',
      isNumber: true,
      value: ({ context_window }) => context_window,
      cell: ({ context_window }) => toCount(context_window),
    },
    {
      name: 'Price per million tokens',
      value: ({ price }) => price.output,
      cell: ({ id, price }) => <Price price={price} isFree={standIns.has(id)} />,
    },
    {
      name: 'Backends',
      value: ({ id }) => (byModel.get(id) ?? []).map(({ name }) => name).join(' '),
      cell: (model) => (
        <Stack gap="xs" className="backends">
          {!byModel.has(model.id) && <Text size="sm">{noBackendText}</Text>}
          {byModel.get(model.id)?.map((backend) => (
            <BackendRow
              key={backend.id}
              backend={backend}
              name={toBackendName(backend, model)}
              canManage={canManage}
              onChoose={(action) => actions.run(backend, action)}
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
        <AddMenu
          model={id}
          needsBackend={standIns.has(id) || !byModel.has(id)}
          pullBlocked={toPullBlocked(pulledIds.has(id), served !== null)}
          canManage={canManage}
          onChoose={(dialog) => open(dialog, id)}
        />
      ),
    });
  }

  return (
    <Page
      title="Models"
      description={`Requests name one of these IDs, e.g. "model": "${toDefaultModel(chats.ids)}".`}
      actions={
        canUse && (
          <Group>
            {canManage && (
              <Button variant="default" onClick={() => open('add-backend', null)}>
                Add backend
              </Button>
            )}
            <Button onClick={() => open('pull', null)}>Pull weights</Button>
          </Group>
        )
      }
    >
      {overview && <Pulls overview={overview} canUse={canUse} />}
      <ErrorNotice error={actions.error ?? backends.error} />
      <DataTable
        label="Models"
        query={weights}
        // Shown only once the backends are there as well: they would make the list jump.
        rows={backends.isPending ? undefined : overview?.models}
        columns={columns}
        skeletonRows={8}
        empty={
          <EmptyState title="No models" art="chip">
            The configuration defines no models, so requests have nothing to use.
          </EmptyState>
        }
      />
      {overview && <StoredWeightsList weights={overview.data} canUse={canUse} />}
      {canUse && overview && dialog === 'pull' && (
        <PullDialog models={overview.models} initialModel={initialModel} onClose={close} />
      )}
      {canManage && overview && dialog === 'add-backend' && (
        <AddBackendDialog
          models={overview.models.map(({ id }) => id)}
          initialModel={initialModel}
          onClose={close}
        />
      )}
      {actions.dialog}
    </Page>
  );
}

const ModelId = ({ model }: { model: ModelWeights }) => (
  <div>
    <Group gap={4} wrap="nowrap">
      <Anchor
        component={Link}
        href={toModelPath(model.id)}
        size="sm"
        ff="monospace"
        className="breakable"
      >
        {model.id}
      </Anchor>
      <CopyButton value={model.id} label={`Copy ${model.id}`} />
    </Group>
    <Text size="xs" c="dimmed">
      {model.owned_by}
      {!model.listed && ' · not listed by /v1/models'}
      {model.aliases.length > 0 && ` · also ${model.aliases.join(', ')}`}
    </Text>
  </div>
);

const Price = ({ price, isFree }: { price: ModelWeights['price']; isFree: boolean }) => (
  <div className="model-price">
    <Text size="sm">
      {toMoney(price.input)} in · {toMoney(price.output)} out
    </Text>
    {isFree && (
      <Text size="xs" c="dimmed">
        free while the stand-in answers
      </Text>
    )}
  </div>
);

function Queue({ backends = [] }: { backends: BackendView[] | undefined }) {
  const queued = backends[0]?.queued ?? 0;
  if (queued === 0) return null;
  return <Text size="xs">{toCounted(queued, 'request')} waiting for a free backend.</Text>;
}

const toPullBlocked = (isPulling: boolean, hasWeights: boolean) =>
  isPulling ? 'Already downloading.' : hasWeights ? 'Already downloaded.' : null;

interface AddMenuProps {
  model: string;
  /** True if no backend serves it. */
  needsBackend: boolean;
  /** Why weights can't be pulled now; null if they can. */
  pullBlocked: string | null;
  canManage: boolean;
  onChoose: (dialog: 'pull' | 'add-backend') => void;
}

const AddMenu = ({ model, needsBackend, pullBlocked, canManage, onChoose }: AddMenuProps) => (
  <Menu position="bottom-end" withinPortal>
    <Menu.Target>
      {needsBackend ? (
        <Button variant="default" size="xs" aria-label={`Serve the real model of ${model}`}>
          Serve the real model
        </Button>
      ) : (
        <Button variant="default" size="xs" aria-label={`Add to ${model}`}>
          Add
        </Button>
      )}
    </Menu.Target>
    <Menu.Dropdown maw={280}>
      <Menu.Item disabled={pullBlocked !== null} onClick={() => onChoose('pull')}>
        Pull weights
        {pullBlocked && <Text size="xs">{pullBlocked}</Text>}
      </Menu.Item>
      <Menu.Item disabled={!canManage} onClick={() => onChoose('add-backend')}>
        Add backend
        {!canManage && <Text size="xs">Only owners can add backends.</Text>}
      </Menu.Item>
    </Menu.Dropdown>
  </Menu>
);
