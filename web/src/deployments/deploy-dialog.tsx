// Creates a deployment, or changes one.

import { Select, SimpleGrid } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import { toDeploymentName } from '#lib/text/deployment-name.ts';
import { post } from '../api.ts';
import { toFieldText } from '../browser/form-data.ts';
import { Advanced } from '../components/advanced.tsx';
import { TextField } from '../components/fields.tsx';
import { FormDialog } from '../components/form-dialog.tsx';
import { ModelSelect } from '../models/model-select.tsx';
import { useGgufRepository, useModels } from '../models/use-models.ts';
import { parseSettings } from './deployment-form.ts';
import {
  deploymentsKey,
  deploymentsPath,
  type Engine,
  engineNames,
  toApiPath,
  toDeploymentKey,
} from './deployments.ts';
import { MemoryFits } from './memory-fits.tsx';
import { PlaceSelect } from './place-select.tsx';
import { useOwnEngine, usePlace } from './places.ts';
import {
  ArgumentsField,
  EngineFields,
  EnvironmentFields,
  ImageField,
  LadderFields,
  MemoryCheckField,
  ScalingFields,
  ScheduleField,
  SetupField,
} from './settings-fields.tsx';

interface DeployDialogProps {
  /** The deployment to change; null to create one. */
  deployment: DeploymentView | null;
  /** The model that is selected at first; null for none. */
  initialModel?: string | null;
  onSaved: (name: string) => void;
  onClose: () => void;
}

const engines = Object.entries(engineNames).map(([value, label]) => ({ value, label }));

export function DeployDialog(props: DeployDialogProps) {
  const { deployment, initialModel = null, onSaved, onClose } = props;
  const client = useQueryClient();
  const models = useModels();
  const [model, setModel] = useState(deployment?.model ?? initialModel);
  const ownEngine = useOwnEngine() ?? 'builtin';
  const [chosenEngine, setEngine] = useState(deployment?.engine ?? null);
  const engine = chosenEngine ?? ownEngine;
  const [source, setSource] = useState(deployment?.source ?? '');
  // Without a source, the built-in engine would serve the small model that comes with Millrace.
  const suggested = useGgufRepository(model);
  const takesGguf = engine === 'builtin' || engine === 'llama-server';
  const defaultSource = deployment === null && takesGguf ? suggested : '';
  const wanted = { model, engine, source: source || defaultSource };
  const { need, places, place, choosePlace } = usePlace(deployment, wanted);
  async function save(form: FormData) {
    const name = deployment?.name ?? toFieldText(form, 'name');
    const settings = { engine, runs_on: place, ...parseSettings(form) };
    if (deployment === null) await post(deploymentsPath, { name, model, ...settings });
    else await post(toApiPath(name), settings);
    await Promise.all(
      [deploymentsKey, toDeploymentKey(name)].map((queryKey) =>
        client.invalidateQueries({ queryKey }),
      ),
    );
    const done = deployment === null ? 'created' : 'changed';
    notifications.show({ message: `Deployment “${name}” ${done}.` });
    onSaved(name);
  }
  return (
    <FormDialog
      title={deployment === null ? 'Deploy model' : `Edit “${deployment.name}”`}
      action={deployment === null ? 'Deploy' : 'Save'}
      size="lg"
      disabled={model === null}
      error={models.error}
      onSubmit={save}
      onClose={onClose}
    >
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        {deployment === null && (
          <ModelSelect
            description="The model ID to serve."
            models={models.data?.data.map(({ id }) => id) ?? []}
            value={model}
            onChange={setModel}
            data-autofocus
          />
        )}
        {deployment === null && <NameField model={model} />}
        <Select
          label="Engine"
          description="The program that runs the model."
          data={engines}
          allowDeselect={false}
          value={engine}
          onChange={(value) => setEngine((value ?? engine) as Engine)}
        />
        <PlaceSelect places={places} value={place} onChange={choosePlace} />
      </SimpleGrid>
      {need && <MemoryFits need={need} places={places} chosen={place} />}
      <EngineFields
        key={defaultSource}
        engine={engine}
        deployment={deployment}
        defaultSource={defaultSource}
        onSource={setSource}
      />
      {place !== 'host' && <SetupField deployment={deployment} />}
      <ScalingFields deployment={deployment} />
      <Advanced
        about="arguments, environment, idle times, schedule"
        initiallyOpen={deployment !== null}
      >
        <ArgumentsField deployment={deployment} />
        <EnvironmentFields deployment={deployment} />
        {place !== 'host' && <ImageField deployment={deployment} />}
        <LadderFields deployment={deployment} engine={engine} place={place} />
        <ScheduleField deployment={deployment} />
        <MemoryCheckField deployment={deployment} />
      </Advanced>
    </FormDialog>
  );
}

/** Filled in from the model until the user changes it. */
function NameField({ model }: { model: string | null }) {
  const [typed, setTyped] = useState<string | null>(null);
  const derived = model === null ? '' : toDeploymentName(model);
  return (
    <TextField
      name="name"
      label="Name"
      description="Lower-case letters, digits and hyphens."
      value={typed ?? derived}
      onChange={(event) => setTyped(event.currentTarget.value)}
      required
      maxLength={63}
    />
  );
}
