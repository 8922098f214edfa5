// The fields for the settings of a deployment, the same for a new one and an existing one.

import { Checkbox, SimpleGrid } from '@mantine/core';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import { toTimeText } from '#lib/text/schedule-text.ts';
import { TextareaField, TextField } from '../components/fields.tsx';
import { defaultLadder, engineFields, ladderFields, numberFields } from './deployment-form.ts';
import type { Engine } from './deployments.ts';

interface FieldsProps {
  /** Null for a new one. */
  deployment: DeploymentView | null;
}

const texts = [
  {
    name: 'source',
    label: 'Source',
    description: 'The weights: a file, a folder, or a repository of the hub.',
  },
  {
    name: 'program',
    label: 'Program',
    description: 'The engine’s path on the server, or its name.',
  },
] as const;

interface EngineFieldsProps extends FieldsProps {
  engine: Engine;
  /** The source of a new deployment until another one is entered. */
  defaultSource: string;
  /** Called with the source once it is entered. */
  onSource: (source: string) => void;
}

export function EngineFields(props: EngineFieldsProps) {
  const { engine, deployment, defaultSource, onSource } = props;
  const shown = texts.flatMap((text) => {
    const field = engineFields[engine][text.name];
    return field === undefined ? [] : [{ ...text, ...field }];
  });
  return (
    <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
      {shown.map(({ name, required = false, ...text }) => {
        return (
          <TextField
            key={name}
            name={name}
            {...text}
            defaultValue={deployment?.[name] ?? (name === 'source' ? defaultSource : '')}
            onBlur={({ currentTarget }) =>
              name === 'source' && onSource(currentTarget.value.trim())
            }
            required={required}
            maxLength={1000}
          />
        );
      })}
    </SimpleGrid>
  );
}

export const ArgumentsField = ({ deployment }: FieldsProps) => (
  <TextareaField
    name="args"
    label="Arguments"
    description="Added to the engine’s command, one per line."
    placeholder={'--max-model-len\n8192'}
    defaultValue={deployment?.args?.join('\n')}
  />
);

export function EnvironmentFields({ deployment }: FieldsProps) {
  const names = deployment?.env ?? [];
  return (
    <>
      <TextareaField
        name="env"
        label="Environment"
        description={
          names.length === 0
            ? 'NAME=value, one per line. Encrypted, and never shown again.'
            : `Set: ${names.join(', ')}. Leave this empty to keep them. What you enter replaces all of them. Encrypted, and never shown again.`
        }
        placeholder="HF_TOKEN=hf_…"
      />
      {names.length > 0 && <Checkbox name="clear_env" label="Remove all variables" />}
    </>
  );
}

/** For replicas on machines. */
export const ImageField = ({ deployment }: FieldsProps) => (
  <TextField
    name="image"
    label="Image"
    description="Family of the machines’ image."
    placeholder="The host’s"
    defaultValue={deployment?.image ?? ''}
    maxLength={64}
  />
);

/** For replicas on machines. */
export const SetupField = ({ deployment }: FieldsProps) => (
  <TextareaField
    name="setup"
    label="Set-up script"
    description="Prepares a new machine before the engine starts."
    placeholder="pip install vllm"
    defaultValue={deployment?.setup ?? ''}
    maxLength={65_536}
  />
);

export const ScheduleField = ({ deployment }: FieldsProps) => (
  <TextareaField
    name="schedule"
    label="Schedule"
    description="Times with more replicas, one per line: days, from-to, replicas, time zone."
    placeholder="mon-fri 08:00-18:00 2 Europe/Berlin"
    defaultValue={deployment?.schedule.map(toTimeText).join('\n')}
  />
);

interface LadderFieldsProps extends FieldsProps {
  engine: Engine;
  place: string;
}

/** vLLM that may sleep takes requests without a key, so it must be alone on its machine. */
const canSleep = (engine: Engine, place: string) =>
  engine !== 'command' && (engine !== 'vllm' || place !== 'host');

/** Other programs can't sleep, and only a machine can stay without its engine. */
export const LadderFields = ({ deployment, engine, place }: LadderFieldsProps) => (
  <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
    {ladderFields
      .filter(({ name }) => name !== 'asleep' || canSleep(engine, place))
      .filter(({ name }) => name !== 'stopped' || place !== 'host')
      .map(({ name, ...field }) => (
        <TextField
          key={name}
          name={name}
          {...field}
          type="number"
          step={1}
          min={1}
          max={604_800}
          defaultValue={(deployment?.ladder ?? defaultLadder)[name] ?? ''}
        />
      ))}
  </SimpleGrid>
);

export const ScalingFields = ({ deployment }: FieldsProps) => (
  <SimpleGrid cols={{ base: 1, xs: 3 }} spacing="sm" className="align-end">
    {numberFields.map(({ name, initial, ...field }) => (
      <TextField
        key={name}
        name={name}
        {...field}
        type="number"
        step={1}
        defaultValue={deployment?.[name] ?? initial}
        required
      />
    ))}
  </SimpleGrid>
);

export const MemoryCheckField = ({ deployment }: FieldsProps) => (
  <Checkbox
    name="check_memory"
    label="Check memory"
    description="Refuse the model if it needs more than there is."
    defaultChecked={deployment?.check_memory ?? true}
  />
);
