// Stored weights and pulls. Server-sent events keep the progress of running pulls current.

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { Pull, WeightsOverview } from '#inference/weights/schema.ts';
import { get } from '../api.ts';

export const weightsKey = ['weights'];
/** Each watched pull holds one of the six connections that a browser opens to a server. */
const maxWatched = 2;

export function useWeights() {
  const client = useQueryClient();
  const weights = useQuery({
    queryKey: weightsKey,
    queryFn: () => get<WeightsOverview>('/dashboard/api/weights'),
  });
  const live = (weights.data?.pulls ?? [])
    .filter(isLive)
    .map(({ id }) => id)
    .slice(0, maxWatched);
  const watched = live.join(' ');

  useEffect(() => {
    const sources = watched
      .split(' ')
      .filter((id) => id !== '')
      .map((id) => {
        const events = new EventSource(`/dashboard/api/weights/pulls/${id}/events`);
        events.onmessage = ({ data }: MessageEvent<string>) => {
          const pull = JSON.parse(data) as Pull;
          client.setQueryData<WeightsOverview>(weightsKey, (old) => old && withPull(old, pull));
          if (isLive(pull)) return;
          events.close();
          client.invalidateQueries({ queryKey: weightsKey });
        };
        return events;
      });
    return () => {
      for (const events of sources) events.close();
    };
  }, [client, watched]);
  return weights;
}

export const isLive = ({ state }: Pull) => state === 'queued' || state === 'running';

const withPull = (old: WeightsOverview, pull: Pull): WeightsOverview => ({
  ...old,
  pulls: old.pulls.map((one) => (one.id === pull.id ? pull : one)),
});

/** Running pulls, and the last attempt for each name if it failed. */
export function toShownPulls({ pulls, data }: WeightsOverview): Pull[] {
  const newestFirst = pulls.toSorted((one, other) => (one.created_at < other.created_at ? 1 : -1));
  const isLast = (pull: Pull) => newestFirst.find(({ name }) => name === pull.name) === pull;
  const isStored = ({ name }: Pull) =>
    data.some((one) => one.name === name && one.state === 'whole');
  return newestFirst.filter(
    (pull) => isLive(pull) || (pull.state === 'failed' && isLast(pull) && !isStored(pull)),
  );
}

/** The file name in the name of stored weights, e.g. `Llama-3.2-3B-Instruct-Q4_K_M.gguf`; that of its repository if it is
 * a folder. */
export function toShortName(name: string): string {
  const [folder = '', file = ''] = name.split('/');
  return file === 'safetensors' ? (folder.split('--').at(-1) ?? name) : file;
}
