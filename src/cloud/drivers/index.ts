// Every driver, by the name the configuration gives it.

import { join } from 'node:path';
import type { Driver } from './driver.ts';
import { createSandboxDriver } from './sandbox/sandbox.ts';
import { createScriptedDriver } from './scripted.ts';

export interface DriverOptions {
  dataDir: string;
  isolation: 'auto' | 'none';
  log: (message: string) => void;
}

export type DriverName = keyof typeof drivers;

const drivers = {
  sandbox: ({ dataDir, isolation, log }: DriverOptions): Promise<Driver> =>
    createSandboxDriver({ dataDir, isolation, log }),
  scripted: async ({ dataDir }: DriverOptions): Promise<Driver> =>
    createScriptedDriver({ folder: join(dataDir, 'scripted-machines') }),
} as const;

export const createDriver = (name: DriverName, options: DriverOptions): Promise<Driver> =>
  drivers[name](options);
