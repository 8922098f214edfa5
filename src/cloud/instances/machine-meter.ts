// Measures machines, for the pages of machines and of deployments. Callers that ask about the same
// machine within a second share one measurement, so that many viewers cost as much as one.

import { DriverError, type MachineStats } from '#cloud/drivers/driver.ts';
import type { Hosts } from '#cloud/hosts/hosts.ts';
import { createKeyedMutex } from '#lib/async/keyed-mutex.ts';
import { shareRecent } from '#lib/async/share-recent.ts';
import type { Clock } from '#lib/clock.ts';
import { memoize } from '#lib/memory/caches.ts';

export interface MachineMeasurement extends MachineStats {
  /** When it was measured, in Unix milliseconds. */
  readonly at: number;
}

/** At most four machines of a host are measured at once. Throws DriverError if the machine does not run. */
export type MachineMeter = (hostId: string, id: string) => Promise<MachineMeasurement>;

const sharedMs = 1_000;
const maxAtOnce = 4;

export function createMachineMeter(clock: Clock, hosts: Pick<Hosts, 'driverOf'>): MachineMeter {
  const lanes = createKeyedMutex();

  async function measure([hostId, id]: readonly [string, string]): Promise<MachineMeasurement> {
    const driver = hosts.driverOf(hostId);
    if (driver === undefined) throw new DriverError('unavailable', 'The host does not answer.');
    const stats = await driver.stats(id);
    if (stats === undefined) throw new DriverError('unavailable', 'The machine does not run now.');
    return { at: clock.now(), ...stats };
  }

  const meterOf = memoize(
    (machine: readonly [string, string]) => machine.join(' '),
    ([hostId, id]) => {
      // Ids are random, so their last digit divides the machines of a host evenly.
      const lane = `${hostId} ${Number.parseInt(id.slice(-1), 16) % maxAtOnce}`;
      return shareRecent(sharedMs, () => lanes.run(lane, () => measure([hostId, id])));
    },
  );
  return (hostId, id) => meterOf([hostId, id])();
}
