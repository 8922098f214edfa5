// Launches a machine in three steps. What was chosen is kept when going back.

import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { InstanceTypes } from '#cloud/schema.ts';
import { get } from '../api.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { toPrice } from './instances.ts';
import { AccessStep } from './launch-access-step.tsx';
import { emptyChoice, isStepComplete, toLaunch } from './launch-choice.ts';
import { LocationStep } from './launch-location-step.tsx';
import { launchMany } from './launch-many.ts';
import { TypeStep } from './launch-type-step.tsx';

const steps = [
  { title: 'What kind of machine', next: 'Next', body: TypeStep },
  { title: 'Where, and with what on it', next: 'Next', body: LocationStep },
  { title: 'Who is let in', next: 'Launch', body: AccessStep },
] as const;

export function LaunchDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [at, setAt] = useState(0);
  const [launched, setLaunched] = useState(0);
  const [earlier, setEarlier] = useState(0);
  const [choice, setChoice] = useState(emptyChoice);
  const types = useQuery({
    queryKey: ['instance-types'],
    queryFn: () => get<{ data: InstanceTypes }>('/api/v1/instance-types'),
  });
  const launch = useMutation({
    async mutationFn() {
      let done = 0;
      setLaunched(0);
      try {
        await launchMany(toLaunch(choice), { count: choice.count, earlier }, (now) => {
          done = now;
          setLaunched(now);
        });
      } catch (error) {
        // Those that there are need not be launched once more.
        setEarlier(earlier + done);
        setChoice((before) => ({ ...before, count: before.count - done }));
        throw error;
      }
    },
    // Some of several may be there although the last was refused.
    onSettled: () => client.invalidateQueries({ queryKey: ['instances'] }),
    onSuccess() {
      const { count } = choice;
      const message = count === 1 ? 'The machine is starting.' : `${count} machines are starting.`;
      notifications.show({ message });
      onClose();
    },
  });
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (at < steps.length - 1) setAt(at + 1);
    else launch.mutate();
  };

  const { title, next, body: Step } = steps[at as 0 | 1 | 2];
  const price = types.data?.data[choice.type ?? '']?.instance_type.price_cents_per_hour;
  return (
    <Modal opened onClose={onClose} title="Launch a machine" size="lg">
      <form onSubmit={submit}>
        <Stack>
          <Text size="sm" c="dimmed" role="status">
            Step {at + 1} of {steps.length} · {title}
          </Text>
          <ErrorNotice error={types.error} onRetry={() => types.refetch()} />
          <Step
            types={types.data?.data}
            choice={choice}
            onChange={(change) => setChoice((before) => ({ ...before, ...change }))}
          />
          <ErrorNotice error={launch.error} />
          <Group justify="space-between">
            <Text size="sm" role="status">
              {launch.isPending && choice.count > 1
                ? `${launched} of ${choice.count} launched`
                : price !== undefined && `${choice.type} · ${toPrice(price * choice.count)}`}
            </Text>
            <Group>
              <Button variant="default" onClick={at === 0 ? onClose : () => setAt(at - 1)}>
                {at === 0 ? 'Cancel' : 'Back'}
              </Button>
              <Button
                type="submit"
                disabled={!isStepComplete(at, choice)}
                loading={launch.isPending}
              >
                {next}
              </Button>
            </Group>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
