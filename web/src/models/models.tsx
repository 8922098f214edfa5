// Every model id that a request may name, what answers for it, and the weights on the server's disk.

import { Badge, Button, Group, Text } from '@mantine/core';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { ModelWeights } from '../../../src/inference/weights/schema.ts';
import { useMe } from '../account.ts';
import { CopyIcon } from '../parts/copy.tsx';
import { Page } from '../parts/page.tsx';
import { type Column, Empty, Records } from '../parts/records.tsx';
import { toDefaultModel, useModels } from './list.ts';
import { PullDialog } from './pull-dialog.tsx';
import { Pulls } from './pulls.tsx';
import { StoredWeightsList } from './stored-weights.tsx';
import { isLive, toShortName, useWeights } from './weights.ts';

export default function Models() {
  const { canUse } = useMe();
  const [location, navigate] = useLocation();
  const [wanted, setWanted] = useState<string | null>(null);
  const listed = useModels();
  const weights = useWeights();
  const overview = weights.data;
  const pulledIds = new Set(overview?.pulls.filter(isLive).map(({ model }) => model));

  function openPull(model: string | null) {
    setWanted(model);
    navigate('/models/pull');
  }

  const columns: Column<ModelWeights>[] = [
    {
      name: 'Model id',
      cell: ({ id, owned_by }) => (
        <div>
          <Group gap={4} wrap="nowrap">
            <Text size="sm" ff="monospace" className="breakable">
              {id}
            </Text>
            <CopyIcon value={id} label={`Copy ${id}`} />
          </Group>
          <Text size="xs" c="dimmed">
            {owned_by}
          </Text>
        </div>
      ),
    },
    { name: 'Answered by', cell: (model) => <AnsweredBy model={model} /> },
    { name: 'Context', cell: ({ context_window }) => context_window.toLocaleString('en') },
    {
      name: '$ per million tokens',
      cell: ({ price }) => `${price.input} in, ${price.output} out`,
    },
  ];
  if (canUse) {
    columns.push({
      name: '',
      cell: ({ id, weights: served }) =>
        pulledIds.has(id) ? (
          <Text size="xs" c="dimmed">
            being pulled
          </Text>
        ) : (
          served === null && (
            <Button
              variant="default"
              size="xs"
              onClick={() => openPull(id)}
              aria-label={`Pull weights for ${id}`}
            >
              Pull weights
            </Button>
          )
        ),
    });
  }

  return (
    <Page
      title="Models"
      description={`What a request may name as its model, e.g. "model": "${toDefaultModel(listed.data?.data)}".`}
      actions={canUse && <Button onClick={() => openPull(null)}>Pull weights</Button>}
    >
      {overview && <Pulls overview={overview} canUse={canUse} />}
      <Records
        label="Models"
        query={weights}
        rows={overview?.models}
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
        <PullDialog models={overview.models} wanted={wanted} onClose={() => navigate('/models')} />
      )}
    </Page>
  );
}

function AnsweredBy({ model: { weights } }: { model: ModelWeights }) {
  if (weights === null) {
    return (
      <Badge variant="default" tt="none" miw="max-content">
        built-in stand-in
      </Badge>
    );
  }
  return (
    <Text size="sm" className="breakable">
      {toShortName(weights)}
    </Text>
  );
}
