// What is not as it should be, the worst first: failed deployments and backends, unhealthy machines, hosts that can't be reached, a
// budget that is nearly used up, and models that only a stand-in answers for.

import { Anchor, Button, Paper, Text } from '@mantine/core';
import { Link } from 'wouter';
import { toCounted } from '#lib/text/format.ts';
import { Section } from '../components/section.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import { useMe } from '../current-user.ts';
import { type Problem, useProblems } from './problems.ts';

const shown = 8;

export function Attention() {
  const { canUse } = useMe();
  const problems = useProblems();
  // Nothing is claimed to be healthy before all of it is known.
  if (problems === undefined) return null;
  if (problems.length === 0) {
    return (
      <Paper withBorder px="md" py="xs" className="all-well">
        <StatusBadge tone="good">All backends, machines and hosts are healthy</StatusBadge>
      </Paper>
    );
  }
  return (
    <Section title="Needs attention">
      <Paper withBorder component="ul" className="problems">
        {problems.slice(0, shown).map((problem) => (
          <Row key={problem.id} problem={problem} canUse={canUse} />
        ))}
        {problems.length > shown && (
          <li className="muted">and {toCounted(problems.length - shown, 'other')}</li>
        )}
      </Paper>
    </Section>
  );
}

const Row = ({ problem, canUse }: { problem: Problem; canUse: boolean }) => (
  <li>
    <div>
      <div className="problem-title">
        <Anchor component={Link} href={problem.href} size="sm" fw={500} className="breakable">
          {problem.title}
        </Anchor>
        <StatusBadge tone={problem.tone}>{problem.state}</StatusBadge>
      </div>
      {problem.detail && (
        <Text size="xs" c="dimmed" className="breakable">
          {problem.detail}
        </Text>
      )}
    </div>
    {canUse && problem.action && (
      <Button size="xs" variant="default" component={Link} href={problem.action.href}>
        {problem.action.label}
      </Button>
    )}
  </li>
);
