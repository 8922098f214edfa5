// The home page: links to get started, this month's usage, and code examples.

import { Anchor, Code, Group, Paper, SimpleGrid, Stack, Text, Title } from '@mantine/core';
import IconKey from '@tabler/icons-react/dist/esm/icons/IconKey.mjs';
import IconMessage from '@tabler/icons-react/dist/esm/icons/IconMessage.mjs';
import IconServer2 from '@tabler/icons-react/dist/esm/icons/IconServer2.mjs';
import IconSparkles from '@tabler/icons-react/dist/esm/icons/IconSparkles.mjs';
import { Link } from 'wouter';
import { Page } from '../components/page.tsx';
import { useMe } from '../current-user.ts';
import { CodeExamples } from './code-examples.tsx';
import { MonthSummary } from './month-summary.tsx';

const cards = [
  {
    path: '/playground',
    icon: IconMessage,
    title: 'Chat with a model',
    text: 'Try a model in the browser. See its speed, change its settings, and copy the code.',
  },
  {
    path: '/api-keys/new',
    icon: IconKey,
    title: 'Create an API key',
    text: 'Give a program access. Keys work with the OpenAI libraries and with the cloud API.',
  },
  {
    path: '/machines/new',
    icon: IconServer2,
    title: 'Launch a machine',
    text: 'Start a Linux machine in three steps. Connect with SSH or from this dashboard.',
  },
];

const viewerCards = [
  {
    path: '/models',
    icon: IconSparkles,
    title: 'View models',
    text: 'The model IDs that programs can use in requests.',
  },
  {
    path: '/api-keys',
    icon: IconKey,
    title: 'View API keys',
    text: 'Which programs have access, and when each key was last used.',
  },
  {
    path: '/machines',
    icon: IconServer2,
    title: 'View machines',
    text: 'What is running, since when, and what it costs.',
  },
];

export default function Home() {
  const { canUse } = useMe();
  const address = window.location.origin;
  return (
    <Page
      title="Home"
      description={
        canUse ? 'Three ways to get started.' : 'You can view everything on this server.'
      }
    >
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        {(canUse ? cards : viewerCards).map(({ path, icon: Icon, title, text }) => (
          <Paper key={path} withBorder p="lg" component={Link} href={path} className="card-link">
            <Stack gap={8}>
              <Icon size={24} stroke={1.5} aria-hidden />
              <Title order={2} size="h4">
                {title}
              </Title>
              <Text size="sm" c="dimmed">
                {text}
              </Text>
            </Stack>
          </Paper>
        ))}
      </SimpleGrid>
      <MonthSummary />
      <CodeExamples />
      <Group gap="xl">
        <Address name="Inference API" value={`${address}/v1`} />
        <Address name="Cloud API" value={`${address}/api/v1`} />
        <Anchor href="/docs" size="sm">
          API reference
        </Anchor>
      </Group>
    </Page>
  );
}

const Address = ({ name, value }: { name: string; value: string }) => (
  <Text size="sm">
    {name} <Code className="breakable">{value}</Code>
  </Text>
);
