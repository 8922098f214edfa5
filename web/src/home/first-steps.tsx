// What to do first on a new server. Each step is ticked off by what exists, wherever it was done; the user may
// dismiss the list, which this browser remembers.

import { Button, Group, Paper, Text } from '@mantine/core';
import { useLocalStorage } from '@mantine/hooks';
import IconCircle from '@tabler/icons-react/dist/esm/icons/IconCircle.mjs';
import IconCircleCheck from '@tabler/icons-react/dist/esm/icons/IconCircleCheck.mjs';
import { Link } from 'wouter';
import { Section } from '../components/section.tsx';
import { useMe } from '../current-user.ts';
import { type Step, useSteps } from './steps.ts';

export function FirstSteps() {
  const { id, canUse } = useMe();
  const steps = useSteps();
  const [isDismissed, setIsDismissed] = useLocalStorage({
    key: `millrace.first-steps-dismissed.${id}`,
    defaultValue: false,
    getInitialValueInEffect: false,
  });
  if (!canUse || isDismissed || steps === undefined) return null;
  const done = steps.filter(({ isDone }) => isDone).length;
  if (done === steps.length) return null;
  return (
    <Section
      title="First steps"
      description={`${done} of ${steps.length} done.`}
      actions={
        <Button variant="subtle" size="xs" onClick={() => setIsDismissed(true)}>
          Dismiss
        </Button>
      }
    >
      <Paper withBorder component="ol" className="steps">
        {steps.map((step) => (
          <StepRow key={step.name} step={step} />
        ))}
      </Paper>
    </Section>
  );
}

const StepRow = ({ step: { name, text, href, isDone } }: { step: Step }) => {
  const Icon = isDone ? IconCircleCheck : IconCircle;
  return (
    <li>
      <Link href={href} className="step" data-done={isDone || undefined}>
        <Icon size={20} stroke={1.6} aria-hidden />
        <div>
          <Group gap={6}>
            <Text size="sm" fw={500}>
              {name}
            </Text>
            {isDone && <span className="visually-hidden">(done)</span>}
          </Group>
          <Text size="xs" c="dimmed">
            {text}
          </Text>
        </div>
      </Link>
    </li>
  );
};
