// The deployments of the server: models whose engines it starts on demand.

import { useQuery } from '@tanstack/react-query';
import type { DeploymentView } from '#deployments/ground/schema.ts';
import type { ReplicaStats } from '#deployments/stats/schema.ts';
import { get, type List } from '../api.ts';

export type Engine = DeploymentView['engine'];

export const deploymentsKey = ['deployments'];
export const deploymentsPath = '/api/v1/deployments';
/** The address of the dialog that creates one. No name starts with a hyphen, so no deployment has this address. */
export const newDeploymentPath = '/deployments/-/new';

/** The address of that dialog with a model selected. */
export const toDeployPath = (model: string) =>
  `${newDeploymentPath}/${new URLSearchParams({ model })}`;

/** Replicas start, and requests come and go, within seconds. */
const refetchInterval = 2_000;
const statsInterval = 5_000;

export const toDeploymentKey = (name: string) => ['deployment', name];
export const toApiPath = (name: string) => `${deploymentsPath}/${encodeURIComponent(name)}`;
export const toDeploymentPath = (name: string) => `/deployments/${encodeURIComponent(name)}`;

export const useDeployments = () =>
  useQuery({
    queryKey: deploymentsKey,
    queryFn: () => get<List<DeploymentView>>(deploymentsPath),
    refetchInterval,
  });

export const useDeployment = (name: string) =>
  useQuery({
    queryKey: toDeploymentKey(name),
    queryFn: () => get<{ data: DeploymentView }>(toApiPath(name)),
    refetchInterval,
  });

/** Measures what the replicas use, while there are some and the page is visible. */
export const useReplicaStats = ({ name, replicas }: DeploymentView) =>
  useQuery({
    queryKey: [...toDeploymentKey(name), 'stats'],
    queryFn: () => get<{ data: ReplicaStats[] }>(`${toApiPath(name)}/stats`),
    refetchInterval: statsInterval,
    enabled: replicas.length > 0,
  });

export const useEngineLog = (name: string) =>
  useQuery({
    queryKey: [...toDeploymentKey(name), 'log'],
    queryFn: () => get<{ data: { lines: string[] } }>(`${toApiPath(name)}/log`),
    refetchInterval,
  });

export const engineNames: Record<Engine, string> = {
  vllm: 'vLLM',
  sglang: 'SGLang',
  'llama-server': 'llama-server',
  builtin: 'Built-in engine',
  command: 'Other program',
};

export const countReady = ({ replicas }: DeploymentView) =>
  replicas.filter(({ state }) => state === 'ready').length;
