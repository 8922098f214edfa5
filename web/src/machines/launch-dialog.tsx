// Launches one or several machines in three steps. Going back keeps what was entered.

import { Button, Group, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { toHourlyPrice } from '#lib/format.ts';
import { handleSubmit } from '../browser/form-data.ts';
import { ErrorNotice } from '../components/error-notice.tsx';
import { GuardedModal } from '../components/leave-guard.tsx';
import { NetworkNotice } from '../components/network-notice.tsx';
import { useInstanceTypes } from '../queries.ts';
import { instancesKey } from './instances.ts';
import { AccessStep } from './launch-access-step.tsx';
import { emptyChoice, isStepComplete, toLaunch } from './launch-choice.ts';
import { LocationStep } from './launch-location-step.tsx';
import { launchMany } from './launch-many.ts';
import { TypeStep } from './launch-type-step.tsx';

const steps = [
  { title: 'Machine type', next: 'Next', body: TypeStep },
  { title: 'Region, image and storage', next: 'Next', body: LocationStep },
  { title: 'Name and SSH key', next: 'Launch', body: AccessStep },
] as const;

export function LaunchDialog({ onClose }: { onClose: () => void }) {
  const [at, setAt] = useState(0);
  const [choice, setChoice] = useState(emptyChoice);
  const [edited, setEdited] = useState(false);
  const { launch, launched } = useLaunch(onClose, (failedAfter) =>
    setChoice((before) => ({ ...before, count: before.count - failedAfter })),
  );
  const types = useInstanceTypes();
  const submit = handleSubmit(() => {
    if (at < steps.length - 1) setAt(at + 1);
    else launch.mutate(choice);
  });
  const { title, next, body: Step } = steps[at as 0 | 1 | 2];
  const price = types.data?.data[choice.type ?? '']?.instance_type.price_cents_per_hour;
  return (
    <GuardedModal
      guard={{ unsaved: edited && !launch.isPending && !launch.isSuccess }}
      onClose={onClose}
      title="Launch machine"
      size="lg"
    >
      {(close) => (
        <form onSubmit={submit} onChange={() => setEdited(true)}>
          <Stack>
            <Text size="sm" c="dimmed" role="status">
              Step {at + 1} of {steps.length} · {title}
            </Text>
            <NetworkNotice region={choice.region} />
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
                  : price !== undefined &&
                    `${choice.type} · ${toHourlyPrice(price * choice.count)}`}
              </Text>
              <Group>
                <Button variant="default" onClick={at === 0 ? close : () => setAt(at - 1)}>
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
      )}
    </GuardedModal>
  );
}

/**
 * Launches the chosen machines. If one launch fails, `onFailure` gets the number of machines that are starting:
 * a second attempt must launch only the others.
 */
function useLaunch(onClose: () => void, onFailure: (launched: number) => void) {
  const client = useQueryClient();
  const [launched, setLaunched] = useState(0);
  const [earlier, setEarlier] = useState(0);
  const launch = useMutation({
    async mutationFn(choice: typeof emptyChoice) {
      let done = 0;
      setLaunched(0);
      try {
        await launchMany(toLaunch(choice), { count: choice.count, earlier }, (now) => {
          done = now;
          setLaunched(now);
        });
      } catch (error) {
        setEarlier(earlier + done);
        onFailure(done);
        throw error;
      }
    },
    // Even after a failure some machines may be starting.
    onSettled: () => client.invalidateQueries({ queryKey: instancesKey }),
    onSuccess(_, { count }) {
      const message = count === 1 ? 'Machine is starting.' : `${count} machines are starting.`;
      notifications.show({ message });
      onClose();
    },
  });
  return { launch, launched };
}
