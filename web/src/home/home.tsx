// The first page: three things to try, and the code for the same from elsewhere.

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

const things = [
  {
    path: '/playground',
    icon: IconMessage,
    title: 'Chat now',
    text: 'Talk to a model in the browser. See its speed, change its settings, take the code.',
  },
  {
    path: '/api-keys/new',
    icon: IconKey,
    title: 'Make an API key',
    text: 'For programs. Works with the OpenAI libraries and with the cloud API.',
  },
  {
    path: '/machines/new',
    icon: IconServer2,
    title: 'Launch a machine',
    text: 'A Linux machine of your own in three steps, reached by ssh or from this page.',
  },
];

const thingsToSee = [
  {
    path: '/models',
    icon: IconSparkles,
    title: 'See the models',
    text: 'Every model id that programs can ask for.',
  },
  {
    path: '/api-keys',
    icon: IconKey,
    title: 'See the API keys',
    text: 'Which programs have access, and when they last used it.',
  },
  {
    path: '/machines',
    icon: IconServer2,
    title: 'See the machines',
    text: 'What runs, since when, and what it costs.',
  },
];

export function Home() {
  const { canUse } = useMe();
  const address = window.location.origin;
  return (
    <Page title="Home" description={canUse ? 'Three things to try.' : 'What there is to see.'}>
      <SimpleGrid cols={{ base: 1, sm: 3 }}>
        {(canUse ? things : thingsToSee).map(({ path, icon: Icon, title, text }) => (
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
