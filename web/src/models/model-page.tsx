// One model: its backends, its traffic, what it costs, and code that uses it.

import {
  Anchor,
  Button,
  Group,
  Paper,
  SegmentedControl,
  Skeleton,
  Stack,
  Text,
} from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { ModelWeights } from '#inference/weights/schema.ts';
import { toCounted, toTokenPrice } from '#lib/text/format.ts';
import { toAgentCode } from '../code-samples/agents.ts';
import { sampleQuestion, toChatCode } from '../code-samples/chat.ts';
import { toFrameworkCode } from '../code-samples/frameworks.ts';
import { toEmbeddingCode, toRerankCode } from '../code-samples/pooling.ts';
import { CodeSamples } from '../components/code-samples.tsx';
import { CopyButton } from '../components/copy-button.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { Facts } from '../components/facts.tsx';
import { Page } from '../components/page.tsx';
import { Section } from '../components/section.tsx';
import { useMe } from '../current-user.ts';
import { toDeployPath } from '../deployments/deployments.ts';
import { ModelFit } from '../deployments/memory-fits.tsx';
import { NotFound } from '../not-found.tsx';
import { Traffic } from '../usage/traffic.tsx';
import { BackendRow } from './backend-row.tsx';
import { toBackendName, toPullPath, useBackends } from './backends.ts';
import { NoBackend } from './no-backend.tsx';
import { useBackendActions } from './use-backend-actions.tsx';
import { useWeights } from './weights.ts';
import './models.css';

export default function ModelPage({ id }: { id: string }) {
  const weights = useWeights();
  const model = weights.data?.models.find((one) => one.id === id);
  if (weights.data !== undefined && model === undefined) return <NotFound />;
  return (
    <Page
      title={id}
      description={model && `By ${model.owned_by}.`}
      actions={
        <Group gap="xs">
          <CopyButton value={id} label="Copy model ID" />
          {model?.kind === 'chat' && (
            <Button component={Link} href={`/playground/${new URLSearchParams({ model: id })}`}>
              Open in playground
            </Button>
          )}
        </Group>
      }
    >
      <ErrorNotice error={weights.error} onRetry={() => weights.refetch()} />
      {model === undefined ? (
        <Skeleton h={90} aria-busy={weights.isPending} />
      ) : (
        <About {...{ model }} />
      )}
      {model && <Backends model={model} />}
      <Traffic subject={{ model: id }} by="backend" />
      {model && <UseModel model={model} />}
    </Page>
  );
}

const clients = {
  chat: 'Any library for OpenAI’s or Anthropic’s API works, and coding agents do too.',
  embedding: 'The model embeds texts. Any library for OpenAI’s API works.',
  rerank: 'The model ranks documents. Any client of Jina’s or Cohere’s rerank API works.',
};

const UseModel = ({ model }: { model: ModelWeights }) => (
  <Section title="Use it">
    <Text c="dimmed" size="sm">
      {clients[model.kind]} Create an{' '}
      <Anchor component={Link} href="/api-keys/new" underline="always">
        API key
      </Anchor>{' '}
      and put it into the variable MILLRACE_API_KEY.
    </Text>
    {model.kind === 'chat' ? (
      <ChatExamples model={model} />
    ) : (
      <CodeSamples samples={toPoolingCode(window.location.origin, model)} />
    )}
  </Section>
);

const toPoolingCode = (address: string, { id, kind }: ModelWeights) =>
  kind === 'embedding' ? toEmbeddingCode(address, id) : toRerankCode(address, id);

function toExamples({ id, context_window }: ModelWeights, example: string) {
  const address = window.location.origin;
  if (example === 'agents') return toAgentCode(address, id, context_window);
  if (example === 'frameworks') return toFrameworkCode(address, id);
  return toChatCode(address, { model: id, messages: [{ role: 'user', content: sampleQuestion }] });
}

function ChatExamples({ model }: { model: ModelWeights }) {
  const [example, setExample] = useState('chat');
  return (
    <>
      <SegmentedControl
        aria-label="Example"
        data={[
          { value: 'chat', label: 'Code' },
          { value: 'agents', label: 'Coding agents' },
          { value: 'frameworks', label: 'Frameworks' },
        ]}
        value={example}
        onChange={setExample}
        style={{ alignSelf: 'start' }}
      />
      <CodeSamples samples={toExamples(model, example)} />
    </>
  );
}

const About = ({ model }: { model: ModelWeights }) => (
  <Paper withBorder p="lg">
    <Facts
      facts={[
        ['Context window', toCounted(model.context_window, 'token')],
        ['Input price', toTokenPrice(model.price.input)],
        ['Output price', toTokenPrice(model.price.output)],
        ['Accepts', model.input.join(', ')],
        ['Aliases', model.aliases.join(', ') || 'None'],
      ]}
    />
    <ModelFit model={model.id} />
  </Paper>
);

function Backends({ model }: { model: ModelWeights }) {
  const { canManage, canUse } = useMe();
  const backends = useBackends();
  const actions = useBackendActions();
  const own = backends.data?.data.filter((backend) => backend.model === model.id);
  const needsBackend = own?.every(({ kind }) => kind === 'stand-in');
  const path = `/models/add-backend/${new URLSearchParams({ model: model.id })}`;
  return (
    <Section
      title="Backends"
      actions={
        canUse && (
          <Group gap="xs">
            {canManage && (
              <>
                <Button variant="default" size="xs" component={Link} href={path}>
                  Add backend
                </Button>
                <Button variant="default" size="xs" component={Link} href={toDeployPath(model.id)}>
                  Deploy
                </Button>
              </>
            )}
            {needsBackend && (
              <Button size="xs" component={Link} href={toPullPath(model.id)}>
                Serve the real model
              </Button>
            )}
          </Group>
        )
      }
    >
      <ErrorNotice error={actions.error ?? backends.error} />
      <Paper withBorder p="md">
        {own === undefined && <Skeleton h={48} aria-busy={backends.isPending} />}
        <Stack gap="md">
          {own?.length === 0 && <NoBackend model={model.id} canManage={canManage} />}
          {own?.map((backend) => (
            <BackendRow
              key={backend.id}
              backend={backend}
              name={toBackendName(backend, model)}
              canManage={canManage}
              onChoose={(action) => actions.run(backend, action)}
            />
          ))}
        </Stack>
      </Paper>
      {actions.dialog}
    </Section>
  );
}
