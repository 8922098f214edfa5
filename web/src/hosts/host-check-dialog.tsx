// Checks a host and lists the result of each check.

import { Button, Group, Skeleton, Stack, Text } from '@mantine/core';
import IconCheck from '@tabler/icons-react/dist/esm/icons/IconCheck.mjs';
import IconX from '@tabler/icons-react/dist/esm/icons/IconX.mjs';
import { useQuery } from '@tanstack/react-query';
import type { HostChecks, HostView } from '#cloud/hosts/schema.ts';
import { post } from '../api.ts';
import { Dialog } from '../components/dialog.tsx';
import { ErrorNotice } from '../components/error-notice.tsx';
import { toHostPath } from './hosts.ts';

const names: Record<string, string> = {
  reachability: 'Host is reachable',
  isolation: 'Isolation of machines',
  trust: 'Host trusts this server',
  storage: 'Storage for disks',
  network: 'Network for machines',
  images: 'Images',
  gpus: 'GPUs',
};

export function HostCheckDialog({ host, onClose }: { host: HostView; onClose: () => void }) {
  // Never cached: each opening of the dialog runs a new check.
  const check = useQuery({
    queryKey: ['host-check', host.name],
    queryFn: () => post<HostChecks>(`${toHostPath(host)}/check`),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
  const { data } = check;
  return (
    <Dialog onClose={onClose} title={`Host check of “${host.name}”`}>
      <Stack>
        {check.isFetching && <Skeleton h={220} aria-busy="true" />}
        {!check.isFetching && <ErrorNotice error={check.error} />}
        {!check.isFetching && data && (
          <div role="status">
            <Text size="sm" fw={500} mb="sm">
              {data.ok ? 'All checks passed.' : 'Some checks failed.'}
            </Text>
            <ul className="checks">
              {data.checks.map(({ name, ok, message }) => (
                <li key={name}>
                  {ok ? (
                    <IconCheck size={18} role="img" aria-label="Passed" />
                  ) : (
                    <IconX
                      size={18}
                      color="var(--mantine-color-error)"
                      role="img"
                      aria-label="Failed"
                    />
                  )}
                  <div>
                    <Text size="sm">{names[name] ?? name}</Text>
                    <Text size="sm" c="dimmed" className="breakable">
                      {message}
                    </Text>
                  </div>
                </li>
              ))}
            </ul>
          </div>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={() => check.refetch()} loading={check.isFetching}>
            Check again
          </Button>
          <Button onClick={onClose}>Done</Button>
        </Group>
      </Stack>
    </Dialog>
  );
}
