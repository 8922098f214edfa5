// Where the engine of a deployment may run, and whether a model fits there: this server first, then instance types by
// price.

import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { DeploymentView, FitsView } from '#deployments/ground/schema.ts';
import { toHourlyPrice } from '#lib/text/format.ts';
import { get } from '../api.ts';
import { useInstanceTypes } from '../queries.ts';
import { deploymentsPath, type Engine } from './deployments.ts';

export interface WantedModel {
  /** Null until one is selected. */
  model: string | null;
  engine: Engine;
  /** Empty if the weights are those of the model. */
  source: string;
}

export interface Place {
  /** `host`, or an instance type. */
  name: string;
  /** E.g. `gpu_1x_a10, $0.75/hour`. */
  label: string;
  /** Undefined if it is not known what the model needs. */
  fit: FitsView['places'][number] | undefined;
}

const ownLabel = 'This server';
export const toPlaceName = (name: string) => (name === 'host' ? ownLabel : name);

export function useFits({ model, engine, source }: WantedModel): FitsView | undefined {
  const query = new URLSearchParams({
    model: model ?? '',
    engine,
    ...(source === '' ? {} : { source }),
  });
  const { data } = useQuery({
    queryKey: ['fits', `${query}`],
    queryFn: () => get<{ data: FitsView }>(`${deploymentsPath}/-/fits?${query}`),
    enabled: model !== null,
  });
  return data?.data;
}

/** The engine that suits this server's computer; undefined until it is known. */
export function useOwnEngine(): Engine | undefined {
  const { data } = useQuery({
    queryKey: ['own-engine'],
    queryFn: () => get<{ data: { engine: Engine } }>(`${deploymentsPath}/-/engine`),
  });
  return data?.data.engine;
}

/** Types without capacity now are left out, except for `chosen`: the next replica may find some. */
export function usePlaces(fits: FitsView | undefined, chosen: string | null): Place[] {
  const types = useInstanceTypes();
  const fitOf = (name: string) => fits?.places.find((place) => place.name === name);
  const offered = Object.values(types.data?.data ?? {})
    .filter(
      ({ instance_type, regions_with_capacity_available }) =>
        regions_with_capacity_available.length > 0 || instance_type.name === chosen,
    )
    .map(({ instance_type }) => instance_type)
    .sort((one, other) => one.price_cents_per_hour - other.price_cents_per_hour);
  return [
    { name: 'host', label: ownLabel, fit: fitOf('host') },
    ...offered.map(({ name, price_cents_per_hour }) => ({
      name,
      label: `${name}, ${toHourlyPrice(price_cents_per_hour)}`,
      fit: fitOf(name),
    })),
  ];
}

/** The first place that the model fits. This server if there is none, or if it is not known. */
export const toBestPlace = (places: readonly Place[]) =>
  places.find(({ fit }) => fit?.fits)?.name ?? 'host';

/** The place of a deployment: the user's choice, or the best one for the model and the engine until there is one. */
export function usePlace(deployment: DeploymentView | null, wanted: WantedModel) {
  const [chosen, choosePlace] = useState(deployment?.runs_on ?? null);
  const fits = useFits(wanted);
  const places = usePlaces(fits, chosen);
  return { need: fits?.need, places, place: chosen ?? toBestPlace(places), choosePlace };
}
