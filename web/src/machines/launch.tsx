// Launches a machine in three steps. What was chosen is kept when going back.

import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import type { InstanceTypes, Launch } from '../../../src/cloud/schema.ts';
import { get, post } from '../api.ts';
import { ErrorNotice } from '../parts/error-notice.tsx';
import { toPrice } from './instances.ts';
import { KeyStep } from './launch-key.tsx';
import { PlaceStep } from './launch-place.tsx';
import { TypeStep } from './launch-type.tsx';

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
  const [choice, setChoice] = useState<LaunchChoice>({
    type: null,
    region: null,
    image: null,
    filesystems: [],
    rulesets: [],
    sshKey: null,
    name: '',
  });
  const types = useQuery({
    queryKey: ['instance-types'],
    queryFn: () => get<{ data: InstanceTypes }>('/api/v1/instance-types'),
  });
  const launch = useMutation({
    mutationFn: () => post('/api/v1/instance-operations/launch', toLaunch(choice)),
    onSuccess() {
      client.invalidateQueries({ queryKey: ['instances'] });
      notifications.show({ message: 'The machine is starting.' });
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
            <Text size="sm">{price !== undefined && `${choice.type} · ${toPrice(price)}`}</Text>
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

function isDone(step: number, { type, region, image, sshKey }: LaunchChoice): boolean {
  if (step === 0) return type !== null;
  return step === 1 ? region !== null && image !== null : sshKey !== null;
}

function toLaunch(choice: LaunchChoice): Launch {
  const { type, region, image, filesystems, rulesets, sshKey, name } = choice;
  return {
    instance_type_name: type ?? '',
    region_name: region ?? '',
    ssh_key_names: [sshKey ?? ''],
    file_system_names: filesystems,
    firewall_rulesets: rulesets.map((id) => ({ id })),
    ...(image === null ? {} : { image: { id: image } }),
    ...(name.trim() === '' ? {} : { name: name.trim() }),
  };
}
