// Maps each driver name of the configuration to its constructor. Only the driver in use is loaded.

import { join } from 'node:path';
import type { IncusOptions } from '#cloud/drivers/incus/context.ts';
import { type Driver, DriverError } from './driver.ts';

export interface DriverOptions {
  dataDir: string;
  isolation: 'auto' | 'none';
  /** Sandboxes may create namespaces and mounts of their own. Default: false. */
  nested?: boolean;
  /** Sandboxes read the host's /opt in place of their own. Default: false. */
  shareOpt?: boolean;
  /** Memory that sandboxes leave to the host; null for the default. */
  reservedMemoryGib?: number | null;
  /** Disk space that sandboxes and their filesystems leave to the host. Default: 0. */
  diskReserveGib?: number;
  /** Size of new filesystems of sandboxes; null for the default. */
  filesystemGib?: number | null;
  machinesDiskGib?: number | null;
  log: (message: string) => void;
  /** Required by the incus driver. */
  incus?: IncusOptions;
}

export type DriverName = keyof typeof drivers;

const drivers = {
  sandbox: async ({ incus: _, ...options }: DriverOptions): Promise<Driver> => {
    const { createSandboxDriver } = await import('#cloud/drivers/sandbox/sandbox.ts');
    return createSandboxDriver(options);
  },
  incus: async ({ incus, log }: DriverOptions): Promise<Driver> => {
    if (!incus) throw new DriverError('impossible', 'No Incus or LXD endpoint was given.');
    const { createIncusDriver } = await import('#cloud/drivers/incus/incus.ts');
    return createIncusDriver({ log, ...incus });
  },
  scripted: async ({ dataDir }: DriverOptions): Promise<Driver> => {
    const { createScriptedDriver } = await import('./scripted.ts');
    return createScriptedDriver({ folder: join(dataDir, 'scripted-machines') });
  },
} as const;

export const createDriver = (name: DriverName, options: DriverOptions): Promise<Driver> =>
  drivers[name](options);
