// The running machines whose ssh server is in this process, with a way to connect into each. A
// machine that an earlier process started is adopted: it is found by its records and served as if
// this process had started it.

import { DriverError } from '#cloud/drivers/driver.ts';
import type { SandboxContext } from '#cloud/drivers/sandbox/machine/context.ts';
import type { RunningMachine } from '#cloud/drivers/sandbox/machine/enter.ts';
import { toSshRules } from '#cloud/drivers/sandbox/machine/firewall.ts';
import { openMachine } from '#cloud/drivers/sandbox/machine/life-cycle.ts';
import { createForwarder, type Forwarder } from './forwarding.ts';
import { type SshServer, startSshServer } from './server.ts';

export interface ServedMachine {
  readonly machine: RunningMachine;
  readonly server: SshServer;
  /** For connections of this server. Each ssh client has its own. */
  readonly forwarder: Forwarder;
}

export interface ServedMachines {
  find(id: string): ServedMachine | undefined;
  readonly count: number;
  /** Serves the machine if it runs, and stops serving it otherwise. The caller must hold its lock. */
  adopt(id: string): Promise<ServedMachine | undefined>;
  /** Ends the machine's sessions and frees its ssh port. The machine itself runs on. */
  release(id: string): Promise<void>;
  close(): Promise<void>;
}

export function createServedMachines(context: SandboxContext): ServedMachines {
  const served = new Map<string, ServedMachine>();
  let closed = false;

  async function adopt(id: string) {
    const machine = await openMachine(context, id);
    const known = served.get(id);
    if (machine && known?.machine.process.init.startTime === machine.process.init.startTime) {
      await machine.namespaces.close();
      return known;
    }
    try {
      await release(id);
      if (!machine) return undefined;
      if (closed) throw new DriverError('unavailable', 'This server is closing.');
      const rules = toSshRules(context, machine.record.spec.firewall);
      const server = await startSshServer(machine, rules, context);
      const known = { machine, server, forwarder: createForwarder(machine) };
      served.set(id, known);
      return known;
    } catch (error) {
      await machine?.namespaces.close();
      throw error;
    }
  }

  async function release(id: string) {
    const known = served.get(id);
    served.delete(id);
    known?.forwarder.close();
    await known?.server.close();
    await known?.machine.namespaces.close();
  }

  return {
    find: (id) => served.get(id),
    get count() {
      return served.size;
    },
    adopt,
    release,
    async close() {
      closed = true;
      await Promise.all([...served.keys()].map(release));
    },
  };
}
