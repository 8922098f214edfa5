// The stand-in driver for tests and demonstrations: a machine is a small record, and nothing runs behind it.
// A machine's host name selects how it misbehaves.

import { randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import {
  type Driver,
  DriverError,
  type DriverReport,
  type FirewallSpec,
  type ImageReport,
  type KeySpec,
  type MachineSpec,
  type MachineState,
  type MachineStats,
} from './driver.ts';
import {
  createMemoryMachines,
  openMachineFolder,
  type ScriptedMachine,
  type ScriptedMachines,
} from './scripted-machines.ts';
import { connectToScriptedServer } from './scripted-server.ts';

/** A machine whose host name starts with one of these misbehaves in this way. */
type Misbehaviour =
  /** Needs several inspections to come up, the first ones without an address. */
  | 'slow'
  /** The first two launches throw. */
  | 'fails-twice'
  /** Can never be launched. */
  | 'impossible'
  /** Stops right after its first start. */
  | 'dies-after-launch'
  /** Accepts the first launch and forgets it. */
  | 'forgets'
  /** Needs two `terminate` calls. */
  | 'clings'
  /** Accepts no connections. */
  | 'mute';

const is = ({ hostname }: MachineSpec, way: Misbehaviour) => hostname.startsWith(way);

export interface ScriptedDriver extends Driver {
  /** The last thousand calls that change something, in order, e.g. `launch <id>`. */
  readonly calls: readonly string[];
  find(id: string): ScriptedMachine | undefined;
  /** Stops the machine as if it had failed on its own. */
  kill(id: string, reason: string): void;
  /** Brings a stopped machine back as if it had restarted on its own. */
  revive(id: string): void;
  /** Adds an orphan: a machine with this installation's mark that no row asks for. */
  plant(id: string): void;
  /** Makes the host unreachable: every call throws until `comeBack`. */
  goAway(): void;
  comeBack(): void;
  /** Changes what `describe` reports, e.g. to a host with a node offline. */
  become(report: Partial<DriverReport>): void;
}

export interface ScriptedOptions {
  /** Overrides parts of the default report. */
  report?: Partial<DriverReport>;
  /** Folder that keeps machines on disk; undefined keeps them in memory. */
  folder?: string;
  /** Bootable images; undefined accepts any image. */
  images?: ImageReport[];
}

interface ScriptedHost {
  readonly machines: ScriptedMachines;
  readonly calls: string[];
  /** How often each call has failed so far, by the call and its id. */
  readonly failures: Map<string, number>;
  report: Partial<DriverReport>;
  away: boolean;
  changed: (id: string | null) => void;
}

const maxCalls = 1000;

export function createScriptedDriver(options: ScriptedOptions = {}): ScriptedDriver {
  const { images, folder } = options;
  const machines = folder === undefined ? createMemoryMachines() : openMachineFolder(folder);
  const host: ScriptedHost = {
    machines,
    calls: [],
    failures: new Map(),
    report: options.report ?? {},
    away: false,
    changed: () => {},
  };
  return {
    name: 'scripted',
    describe: async () => describe(host),
    prepare: async (spec) => prepare(host, spec),
    launch: async (spec) => launch(host, spec),
    inspect: async (id) => inspect(host, id),
    restart: async (spec) => restart(host, spec),
    terminate: async (id) => terminate(host, id),
    async list() {
      checkReachable(host);
      return machines.ids();
    },
    setFirewall: async (spec) => setFirewall(host, spec),
    refuseKeys: async (spec) => refuseKeys(host, spec),
    createFilesystem: async (id) => recordCall(host, `createFilesystem ${id}`),
    deleteFilesystem: async (id) => recordCall(host, `deleteFilesystem ${id}`),
    async filesystemUsage() {
      checkReachable(host);
      return 4096;
    },
    bootLog: async (id) => (machines.read(id) === undefined ? '' : `machine ${id} booted\n`),
    stats: async (id) => measure(host, id),
    ...(images === undefined ? {} : { images: async () => images }),
    watch(listener) {
      host.changed = listener;
      return () => {
        host.changed = () => {};
      };
    },
    connect: async (id) => connect(host, id),
    async run(id) {
      recordCall(host, `run ${id}`);
      return 0;
    },
    close: async () => {},
    ...controlsOf(host),
  };
}

type Controls = Omit<ScriptedDriver, keyof Driver>;

/** The test's side of the driver. */
function controlsOf(host: ScriptedHost): Controls {
  const { machines } = host;
  return {
    calls: host.calls,
    find: machines.read,
    kill(id, reason) {
      const machine = machines.read(id);
      if (machine !== undefined) machines.write({ ...machine, running: false, reason });
      host.changed(id);
    },
    revive(id) {
      const machine = machines.read(id);
      if (machine !== undefined) machines.write({ ...machine, running: true, looksLeft: 0 });
    },
    plant: (id) => machines.write(toMachine({ ...orphanSpec, id }, '', 1)),
    goAway() {
      host.away = true;
    },
    comeBack() {
      host.away = false;
    },
    become(report) {
      host.report = { ...host.report, ...report };
    },
  };
}

function checkReachable(host: ScriptedHost) {
  if (host.away) throw new DriverError('unavailable', 'The scripted host is switched off.');
}

function recordCall(host: ScriptedHost, call: string) {
  checkReachable(host);
  host.calls.push(call);
  if (host.calls.length > maxCalls) host.calls.shift();
}

function describe(host: ScriptedHost): DriverReport {
  checkReachable(host);
  return {
    isolated: true,
    isolation: 'Scripted: there are no machines behind the records.',
    network: 'Scripted: rules are remembered, not enforced.',
    vcpus: 8,
    memoryGib: 32,
    storageGib: 512,
    gpus: [],
    ...host.report,
  };
}

function launch(host: ScriptedHost, spec: MachineSpec) {
  recordCall(host, `launch ${spec.id}`);
  if (is(spec, 'impossible')) {
    throw new DriverError('impossible', 'The scripted host can never run this machine.');
  }
  if (is(spec, 'fails-twice')) failFirst(host, 2, `launch ${spec.id}`);
  if (is(spec, 'forgets') && !host.failures.has(spec.id)) {
    host.failures.set(spec.id, 1);
    return;
  }
  if (host.machines.read(spec.id) !== undefined) return;
  host.machines.write(toMachine(spec, randomBytes(8).toString('hex'), 1));
}

/** Weights are there after five calls. */
function prepare({ failures }: ScriptedHost, spec: MachineSpec): string | null {
  const call = `prepare ${spec.id}`;
  const calls = failures.get(call) ?? 0;
  if (!spec.weights || calls === 5) return null;
  failures.set(call, calls + 1);
  return `copying weights to the scripted host, ${calls * 20} %`;
}

function inspect(host: ScriptedHost, id: string): MachineState {
  checkReachable(host);
  const { machines } = host;
  const machine = machines.read(id);
  if (machine === undefined) return { state: 'absent' };
  if (!machine.running) return { state: 'stopped', reason: machine.reason };
  const { looksLeft, spec } = machine;
  if (looksLeft > 0) machines.write({ ...machine, looksLeft: looksLeft - 1 });
  const ip = spec.ip ?? '127.77.0.2';
  if (looksLeft > 1) return { state: 'starting', ip: null };
  if (looksLeft === 1) return { state: 'starting', ip };
  return { state: 'running', ip, privateIp: ip.replace(/^127/, '10'), sshPort: 22 };
}

/** One boot is one millisecond of CPU time. Scripted machines have no disk to measure. */
function measure(host: ScriptedHost, id: string): MachineStats | undefined {
  checkReachable(host);
  const machine = host.machines.read(id);
  if (!machine?.running) return undefined;
  return {
    cpuMs: { value: machine.boots },
    memoryBytes: { value: 64 * 1024 ** 2 },
    diskBytes: { unavailable: 'Scripted machines have no disk.' },
    network: { value: { receivedBytes: 2048, sentBytes: 1024 } },
    gpus: { value: [] },
  };
}

function connect(host: ScriptedHost, id: string): Duplex {
  checkReachable(host);
  const machine = host.machines.read(id);
  if (!machine?.running || is(machine.spec, 'mute'))
    throw new DriverError('unavailable', 'Nothing listens in the scripted machine.');
  return connectToScriptedServer(id);
}

function restart(host: ScriptedHost, spec: MachineSpec) {
  recordCall(host, `restart ${spec.id}`);
  const machine = host.machines.read(spec.id);
  if (machine === undefined) {
    throw new DriverError('impossible', 'There is no machine left to restart.');
  }
  if (is(spec, 'fails-twice')) failFirst(host, 2, `restart ${spec.id}`);
  host.machines.write(toMachine(spec, machine.hostKey, machine.boots + 1));
}

function terminate(host: ScriptedHost, id: string) {
  recordCall(host, `terminate ${id}`);
  const machine = host.machines.read(id);
  if (machine !== undefined && machine.clings > 1) {
    host.machines.write({ ...machine, clings: machine.clings - 1 });
    return;
  }
  // Also without a record: a kill may have left a machine half-created or half-removed.
  host.machines.remove(id);
}

function setFirewall(host: ScriptedHost, { id, account, firewall }: FirewallSpec) {
  recordCall(host, `setFirewall ${id}`);
  const machine = host.machines.read(id);
  if (machine !== undefined) {
    host.machines.write({ ...machine, spec: { ...machine.spec, account, firewall } });
  }
}

function refuseKeys(host: ScriptedHost, { id, authorizedKeys, refusedKeys = [] }: KeySpec) {
  recordCall(host, `refuseKeys ${id}`);
  const machine = host.machines.read(id);
  if (machine !== undefined)
    host.machines.write({ ...machine, spec: { ...machine.spec, authorizedKeys, refusedKeys } });
}

/** Throws on the first `times` uses of the call. */
function failFirst({ failures }: ScriptedHost, times: number, call: string) {
  const failed = failures.get(call) ?? 0;
  if (failed >= times) return;
  failures.set(call, failed + 1);
  throw new DriverError('unavailable', `The scripted host is busy (${failed + 1} of ${times}).`);
}

function toMachine(spec: MachineSpec, hostKey: string, boots: number): ScriptedMachine {
  const dies = is(spec, 'dies-after-launch') && boots === 1;
  return {
    id: spec.id,
    spec,
    running: !dies,
    looksLeft: is(spec, 'slow') ? 3 : 1,
    clings: is(spec, 'clings') ? 2 : 0,
    hostKey,
    boots,
    reason: dies ? 'The first process of the machine ended with code 1.' : '',
  };
}

const orphanSpec: Omit<MachineSpec, 'id'> = {
  node: null,
  hostname: 'orphan',
  ip: '127.77.0.9',
  vcpus: 1,
  memoryGib: 1,
  storageGib: 1,
  gpus: [],
  authorizedKeys: [],
  filesystems: [],
  userData: null,
  image: 'host',
  firewall: [],
};
