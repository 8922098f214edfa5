// Every driver, by the name the configuration gives it.

import { join } from 'node:path';
import type { Driver } from './driver.ts';
import { createScriptedDriver } from './scripted.ts';

export interface DriverOptions {
  dataDir: string;
  log: (message: string) => void;
}

export type DriverName = keyof typeof drivers;

const drivers = {
  scripted: async ({ dataDir }: DriverOptions): Promise<Driver> =>
    createScriptedDriver({ folder: join(dataDir, 'scripted-machines') }),
} as const;

export const createDriver = (name: DriverName, options: DriverOptions): Promise<Driver> =>
  drivers[name](options);
