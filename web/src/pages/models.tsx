// Every model id that a request may name.

import { Text } from '@mantine/core';
import { toDefaultModel, useModels } from '../models.ts';
import { CopyIcon } from '../parts/copy.tsx';
import { Page } from '../parts/page.tsx';
import { Empty, Records } from '../parts/records.tsx';

export default function Models() {
  const models = useModels();
  const example = toDefaultModel(models.data?.data);
  return (
    <Page
      title="Models"
      description={`What a request may name as its model, e.g. "model": "${example}".`}
    >
      <Records
        label="Models"
        query={models}
        rows={models.data?.data}
        columns={[
          {
            name: 'Model id',
            cell: ({ id }) => (
              <Text size="sm" ff="monospace" className="breakable">
                {id}
              </Text>
            ),
          },
          { name: 'Owner', cell: ({ owned_by }) => owned_by },
          { name: '', cell: ({ id }) => <CopyIcon value={id} label={`Copy ${id}`} /> },
        ]}
        empty={
          <Empty title="No models">
            The configuration names no models, so there is nothing that requests could ask for.
          </Empty>
        }
      />
    </Page>
  );
}
