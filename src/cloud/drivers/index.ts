// Every driver, by the name the configuration gives it.

import { join } from 'node:path';
import { type Driver, DriverError } from './driver.ts';
import { createIncusDriver, type IncusOptions } from './incus/incus.ts';
import { createSandboxDriver } from './sandbox/sandbox.ts';
import { createScriptedDriver } from './scripted.ts';

export interface DriverOptions {
  dataDir: string;
  isolation: 'auto' | 'none';
  log: (message: string) => void;
  /** Where the endpoint is and what of it is ours to use. */
  incus?: IncusOptions;
}

export type DriverName = keyof typeof drivers;

const drivers = {
  sandbox: ({ dataDir, isolation, log }: DriverOptions): Promise<Driver> =>
    createSandboxDriver({ dataDir, isolation, log }),
  incus: async ({ incus, log }: DriverOptions): Promise<Driver> => {
    if (!incus) throw new DriverError('impossible', 'No Incus or LXD endpoint was given.');
    return createIncusDriver({ log, ...incus });
  },
  scripted: async ({ dataDir }: DriverOptions): Promise<Driver> =>
    createScriptedDriver({ folder: join(dataDir, 'scripted-machines') }),
} as const;

export const createDriver = (name: DriverName, options: DriverOptions): Promise<Driver> =>
  drivers[name](options);
