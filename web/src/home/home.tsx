// The home page: what needs attention, the numbers of the account, its machines, first steps, and code examples.

import { Anchor, Code, Group, Text } from '@mantine/core';
import { Page } from '../components/page.tsx';
import { Attention } from './attention.tsx';
import { CodeExamples } from './code-examples.tsx';
import { FirstSteps } from './first-steps.tsx';
import { RunningMachines } from './running-machines.tsx';
import { Tiles } from './tiles.tsx';
import './home.css';

export default function Home() {
  const address = window.location.origin;
  return (
    <Page title="Home">
      <Attention />
      <Tiles />
      <FirstSteps />
      <RunningMachines />
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
