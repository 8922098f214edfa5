// Shared filesystems: custom volumes of the endpoint's pool, or folders on storage that the operator has mounted on
// every host and on this server, such as NFS, CephFS or Lustre.

import { chown, lstat, mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { DriverError, type MachineSpec } from '#cloud/drivers/driver.ts';
import type { DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import { DaemonError } from '#cloud/drivers/incus/daemon/daemon-response.ts';
import type { Device } from '#cloud/drivers/incus/machine/instance.ts';
import { measureUsage } from '#cloud/drivers/shared/filesystem-usage.ts';

export interface FilesystemStore {
  /** `node` is the cluster member that stores it. */
  create(id: string, node?: string | null): Promise<void>;
  remove(id: string): Promise<void>;
  usage(id: string): Promise<number | null>;
  devices(filesystems: MachineSpec['filesystems']): Record<string, Device>;
  /** Whether the machines' user must be the host's user 1000. */
  readonly mapsUser: boolean;
}

export interface HostPaths {
  /** The storage's folder on the hosts. */
  readonly onHosts: string;
  /** The same folder as this server sees it. */
  readonly here: string;
}

const name = (id: string) => `millrace-${id}`;

function toDevices(
  filesystems: MachineSpec['filesystems'],
  source: (id: string) => Record<string, string>,
): Record<string, Device> {
  return Object.fromEntries(
    filesystems.map(({ id, mountPoint }) => [
      `fs-${id.slice(0, 12)}`,
      { type: 'disk', path: mountPoint, ...source(id) },
    ]),
  );
}

export function inVolumes(client: DaemonClient, pool: string, owner: string): FilesystemStore {
  const volumes = `/1.0/storage-pools/${encodeURIComponent(pool)}/volumes/custom`;
  return {
    mapsUser: false,
    devices: (filesystems) => toDevices(filesystems, (id) => ({ pool, source: name(id) })),

    async create(id, node) {
      if (await client.find(`${volumes}/${name(id)}`)) return;
      const config = { 'user.millrace.id': id, 'user.millrace.owner': owner };
      await client
        .run('POST', volumes, {
          query: { target: node },
          body: { name: name(id), config, content_type: 'filesystem' },
        })
        .catch(async (error) => {
          // Another request created it first.
          if (!(await client.find(`${volumes}/${name(id)}`))) throw error;
        });
    },

    async remove(id) {
      await client.run('DELETE', `${volumes}/${name(id)}`).catch((error) => {
        if (!(error instanceof DaemonError && error.code === 404)) throw error;
      });
    },

    async usage(id) {
      try {
        const state = await client.find<{ usage?: { used?: number } | null }>(
          `${volumes}/${name(id)}/state`,
        );
        return state?.usage?.used ?? null;
      } catch (error) {
        // A pool of plain directories can't measure usage.
        if (error instanceof DaemonError && /not supported/i.test(error.message)) return null;
        throw error;
      }
    },
  };
}

export function inHostPaths({ onHosts, here }: HostPaths): FilesystemStore {
  const place = (id: string) => path.join(here, name(id));
  return {
    mapsUser: true,
    devices: (filesystems) =>
      toDevices(filesystems, (id) => ({ source: path.join(onHosts, name(id)) })),

    async create(id) {
      const storage = await lstat(here).catch(() => null);
      if (!storage?.isDirectory()) {
        throw new DriverError('unavailable', `The shared storage is not mounted at ${here}.`);
      }
      const made = await mkdir(place(id), { recursive: true, mode: 0o755 });
      if (made !== undefined) await chown(place(id), 1000, 1000);
    },

    remove: (id) => rm(place(id), { recursive: true, force: true }),
    usage: (id) => measureUsage(place(id)),
  };
}

const agentDeadlineMs = 120_000;
const agentPauseMs = 1_000;

/** Makes the machine's user the owner of new volumes, which belong to root. */
export async function handOver(
  client: DaemonClient,
  instancePath: string,
  mountPoints: readonly string[],
) {
  if (mountPoints.length === 0) return;
  const script = `for at do
    [ "$(ls -nd "$at" | awk '{ print $3 }')" = 0 ] && chown 1000:1000 "$at" && chmod 755 "$at"
  done
  true`;
  const body = {
    command: ['sh', '-c', script, 'sh', ...mountPoints],
    'wait-for-websocket': false,
    interactive: false,
  };
  const deadline = performance.now() + agentDeadlineMs;
  for (;;) {
    try {
      await client.run('POST', `${instancePath}/exec`, { body, waitMs: 30_000 });
      return;
    } catch (error) {
      // In a virtual machine this needs the agent, which starts with the system.
      const early = error instanceof DaemonError && /agent/i.test(error.message);
      if (!early || performance.now() > deadline) throw error;
      await setTimeout(agentPauseMs);
    }
  }
}
