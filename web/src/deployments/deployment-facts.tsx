// The settings of a deployment.

import { Anchor, Code, Paper, SimpleGrid } from '@mantine/core';
import { Link } from 'wouter';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import { toCount, toDuration } from '#lib/text/format.ts';
import { toLadderText } from '#lib/text/ladder-text.ts';
import { toTimeText } from '#lib/text/schedule-text.ts';
import { toWeightsText } from '#lib/text/weights-text.ts';
import { Fact } from '../components/facts.tsx';
import { RelativeTime } from '../components/relative-time.tsx';
import { toModelPath } from '../models/backends.ts';
import { countReady, engineNames } from './deployments.ts';

export const DeploymentFacts = ({ deployment }: { deployment: DeploymentView }) => (
  <Paper withBorder p="md">
    <SimpleGrid cols={{ base: 1, xs: 2, md: 3 }} spacing="md" verticalSpacing="md">
      <Fact name="Model">
        <Anchor component={Link} href={toModelPath(deployment.model)} size="sm" underline="always">
          {deployment.model}
        </Anchor>
      </Fact>
      {deployment.in_file && <Fact name="Settings">From the configuration file</Fact>}
      <Fact name="Engine">{engineNames[deployment.engine]}</Fact>
      <Fact name="Runs on">
        {deployment.runs_on === 'host' ? 'This server' : deployment.runs_on}{' '}
        {deployment.image !== null && <span className="muted">image {deployment.image}</span>}
      </Fact>
      <Fact name="Weights">{toWeightsText(deployment) ?? 'Not set'}</Fact>
      {deployment.program !== null && <Fact name="Program">{deployment.program}</Fact>}
      {deployment.args !== null && (
        <Fact name="Arguments">
          {deployment.args.length === 0 ? 'None' : <Code>{deployment.args.join(' ')}</Code>}
        </Fact>
      )}
      <Fact name="Environment">{deployment.env.join(', ') || 'None'}</Fact>
      <Fact name="Replicas">
        {countReady(deployment)} ready{' '}
        <span className="muted">
          minimum {deployment.current_min}, maximum {deployment.max}
        </span>
      </Fact>
      {deployment.schedule.length > 0 && (
        <Fact name="Schedule">{deployment.schedule.map(toTimeText).join('; ')}</Fact>
      )}
      <Fact name="Requests">
        {toCount(deployment.running)} running, {toCount(deployment.waiting)} waiting{' '}
        <span className="muted">target {toCount(deployment.target)} per replica</span>
      </Fact>
      <Fact name="When idle">{toLadderText(deployment.ladder)}</Fact>
      <Fact name="Start timeout">{toDuration(deployment.start_seconds * 1000)}</Fact>
      <Fact name="Revision">{deployment.revision}</Fact>
      <Fact name="Created">
        <RelativeTime at={deployment.created_at} />
      </Fact>
    </SimpleGrid>
  </Paper>
);
