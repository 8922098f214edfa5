// Launches a machine in three steps. What was chosen is kept when going back.

import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { InstanceTypes, Launch } from '../../../src/cloud/schema.ts';
import { get } from '../api.ts';
import { ErrorNotice } from '../parts/error-notice.tsx';
import { toPrice } from './instances.ts';
import { KeyStep } from './launch-key.tsx';
import { PlaceStep } from './launch-place.tsx';
import { launchSeveral } from './launch-several.ts';
import { TypeStep } from './launch-type.tsx';
import { findTagFault, toTag } from './tags.ts';

/** Null: not chosen yet. */
export interface LaunchChoice {
  type: string | null;
  region: string | null;
  image: string | null;
  filesystems: string[];
  /** By id. */
  rulesets: string[];
  sshKey: string | null;
  name: string;
  count: number;
  /** As typed. */
  tags: string[];
}

export interface LaunchStepProps {
  types: InstanceTypes | undefined;
  choice: LaunchChoice;
  onChange: (change: Partial<LaunchChoice>) => void;
}

const steps = [
  { title: 'What kind of machine', next: 'Next', body: TypeStep },
  { title: 'Where, and with what on it', next: 'Next', body: PlaceStep },
  { title: 'Who is let in', next: 'Launch', body: KeyStep },
] as const;

export function LaunchDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [at, setAt] = useState(0);
  const [launched, setLaunched] = useState(0);
  const [earlier, setEarlier] = useState(0);
  const [choice, setChoice] = useState<LaunchChoice>({
    type: null,
    region: null,
    image: null,
    filesystems: [],
    rulesets: [],
    sshKey: null,
    name: '',
    count: 1,
    tags: [],
  });
  const types = useQuery({
    queryKey: ['instance-types'],
    queryFn: () => get<{ data: InstanceTypes }>('/api/v1/instance-types'),
  });
  const launch = useMutation({
    async mutationFn() {
      let done = 0;
      setLaunched(0);
      try {
        await launchSeveral(toLaunch(choice), { count: choice.count, earlier }, (now) => {
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
              <Button type="submit" disabled={!isDone(at, choice)} loading={launch.isPending}>
                {next}
              </Button>
            </Group>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

function isDone(step: number, choice: LaunchChoice): boolean {
  const { type, region, image, sshKey, count, tags } = choice;
  if (step === 0) return type !== null;
  if (step === 1) return region !== null && image !== null;
  return sshKey !== null && count >= 1 && findTagFault(tags) === null;
}

function toLaunch(choice: LaunchChoice): Launch {
  const { type, region, image, filesystems, rulesets, sshKey, name, tags } = choice;
  return {
    instance_type_name: type ?? '',
    region_name: region ?? '',
    ssh_key_names: [sshKey ?? ''],
    file_system_names: filesystems,
    firewall_rulesets: rulesets.map((id) => ({ id })),
    ...(tags.length === 0 ? {} : { tags: tags.map(toTag) }),
    ...(image === null ? {} : { image: { id: image } }),
    ...(name.trim() === '' ? {} : { name: name.trim() }),
  };
}
