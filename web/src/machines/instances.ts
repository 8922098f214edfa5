// The account's machines.

import { useQuery } from '@tanstack/react-query';
import type { Instance, InstanceDetail } from '#cloud/schema.ts';
import { getAll } from '../api.ts';
import { toPemPath } from '../browser/download.ts';
import { useList } from '../queries.ts';

export const instancesKey = ['instances'];
export const detailsKey = ['instance-details'];
export const useInstances = () => useList<Instance>(instancesKey, '/api/v1/instances');

/** Details by instance id. */
export function useDetails(): ReadonlyMap<string, InstanceDetail> {
  const details = useQuery({
    queryKey: detailsKey,
    queryFn: () => getAll<InstanceDetail>('/dashboard/api/instances'),
  });
  return new Map(details.data?.data.map((detail) => [detail.id, detail]));
}

export const toMachinePath = ({ id }: Pick<Instance, 'id'>) => `/machines/${id}`;

export const nameOf = ({ name, id }: Pick<Instance, 'name' | 'id'>) => name ?? id.slice(0, 8);

/** The key's file if this server generated it, where the CLI and the dashboard's instructions save it. */
export const findKeyFile = (instance: Instance, detail: InstanceDetail | undefined) =>
  detail?.has_key_file ? toPemPath(instance.ssh_key_names[0] ?? '') : undefined;

export function toSshCommand(instance: Instance, keyFile: string | undefined): string | null {
  const { ip, ssh_port } = instance;
  if (ip === undefined) return null;
  const key = keyFile === undefined ? '' : ` -i ${keyFile}`;
  const port = ssh_port === undefined ? '' : ` -p ${ssh_port}`;
  return `ssh${key}${port} ubuntu@${ip}`;
}
