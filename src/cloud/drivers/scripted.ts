// The driver without machines, for tests and demonstrations: what would be a machine is a small record, in
// memory or in a folder that outlives the process. A machine's host name chooses how it misbehaves.

import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  type Driver,
  DriverError,
  type DriverReport,
  type ImageReport,
  type MachineSpec,
} from './driver.ts';

/** A host name that begins with one of these gets what it says. */
export const misbehaviours = [
  /** Takes some looks to come up, the first ones without an address. */
  'slow',
  /** The first two launches throw. */
  'fails-twice',
  /** Can never be launched. */
  'impossible',
  /** Stops as soon as it was started. */
  'dies-after-launch',
  /** Takes the launch and forgets it, once. */
  'forgets',
  /** Needs two calls to go away. */
  'clings',
] as const;

export interface ScriptedMachine {
  id: string;
  spec: MachineSpec;
  running: boolean;
  /** Looks until it runs. */
  looksLeft: number;
  clings: number;
  hostKey: string;
  boots: number;
  reason: string;
}

export interface ScriptedDriver extends Driver {
  /** Every call that changes something, in order: `launch <id>`. The last thousand. */
  readonly calls: readonly string[];
  find(id: string): ScriptedMachine | undefined;
  /** The machine stops by itself. */
  kill(id: string, reason: string): void;
  /** And comes back by itself. */
  revive(id: string): void;
  /** A machine that nobody asked for, with our mark. */
  plant(id: string): void;
  /** Its host goes away, machines and all: every call throws until `comeBack`. */
  goAway(): void;
  comeBack(): void;
  /** Its host is another from now on, such as one with a node offline. */
  become(report: Partial<DriverReport>): void;
}

export interface ScriptedOptions {
  report?: Partial<DriverReport>;
  /** Keeps machines on disk; in memory when left out. */
  folder?: string;
  /** What it can boot; any image when left out. */
  images?: ImageReport[];
}

const maxCalls = 1000;

export function createScriptedDriver(options: ScriptedOptions = {}): ScriptedDriver {
  const store = options.folder === undefined ? inMemory() : onDisk(options.folder);
  const calls: string[] = [];
  const failures = new Map<string, number>();
  const filesystems = new Set<string>();
  const { images } = options;
  let report = options.report;
  let away = false;
  let changed: (id: string | null) => void = () => {};

  function answer() {
    if (away) throw new DriverError('unavailable', 'The scripted host is switched off.');
  }

  function note(call: string) {
    answer();
    calls.push(call);
    if (calls.length > maxCalls) calls.shift();
  }

  function make(spec: MachineSpec, hostKey: string, boots: number): ScriptedMachine {
    const dies = spec.hostname.startsWith('dies-after-launch') && boots === 1;
    return {
      id: spec.id,
      spec,
      running: !dies,
      looksLeft: spec.hostname.startsWith('slow') ? 3 : 1,
      clings: spec.hostname.startsWith('clings') ? 2 : 0,
      hostKey,
      boots,
      reason: dies ? 'The first process of the machine ended with code 1.' : '',
    };
  }

  /** The next call after this many failures of the same kind goes through. */
  function failFirst(times: number, call: string) {
    const failed = failures.get(call) ?? 0;
    if (failed >= times) return;
    failures.set(call, failed + 1);
    throw new DriverError('unavailable', `The scripted host is busy (${failed + 1} of ${times}).`);
  }

  return {
    name: 'scripted',
    calls,
    find: store.read,

    async describe() {
      answer();
      return {
        isolated: true,
        isolation: 'Scripted: there are no machines behind the records.',
        network: 'Scripted: rules are remembered, not enforced.',
        vcpus: 8,
        memoryGib: 32,
        storageGib: 512,
        gpus: [],
        ...report,
      };
    },

    async launch(spec) {
      note(`launch ${spec.id}`);
      if (spec.hostname.startsWith('impossible')) {
        throw new DriverError('impossible', 'The scripted host can never run this machine.');
      }
      if (spec.hostname.startsWith('fails-twice')) failFirst(2, `launch ${spec.id}`);
      if (spec.hostname.startsWith('forgets') && !failures.has(spec.id)) {
        failures.set(spec.id, 1);
        return;
      }
      if (store.read(spec.id) !== undefined) return;
      store.write(make(spec, randomBytes(8).toString('hex'), 1));
    },

    async inspect(id) {
      answer();
      const machine = store.read(id);
      if (machine === undefined) return { state: 'absent' };
      if (!machine.running) return { state: 'stopped', reason: machine.reason };
      const { looksLeft, spec } = machine;
      if (looksLeft > 0) store.write({ ...machine, looksLeft: looksLeft - 1 });
      const ip = spec.ip ?? '127.77.0.2';
      if (looksLeft > 1) return { state: 'starting', ip: null };
      if (looksLeft === 1) return { state: 'starting', ip };
      return { state: 'running', ip, privateIp: ip.replace(/^127/, '10'), sshPort: 22 };
    },

    async restart(spec) {
      note(`restart ${spec.id}`);
      const machine = store.read(spec.id);
      if (machine === undefined) {
        throw new DriverError('impossible', 'There is no machine left to restart.');
      }
      if (spec.hostname.startsWith('fails-twice')) failFirst(2, `restart ${spec.id}`);
      store.write(make(spec, machine.hostKey, machine.boots + 1));
    },

    async terminate(id) {
      note(`terminate ${id}`);
      const machine = store.read(id);
      if (machine !== undefined && machine.clings > 1) {
        store.write({ ...machine, clings: machine.clings - 1 });
        return;
      }
      // Also without a record: a kill may have left a machine half-made or half-removed.
      store.remove(id);
    },

    async list() {
      answer();
      return store.ids();
    },

    async setFirewall(id, rules) {
      note(`setFirewall ${id}`);
      const machine = store.read(id);
      if (machine !== undefined) {
        store.write({ ...machine, spec: { ...machine.spec, firewall: rules } });
      }
    },

    async createFilesystem(id) {
      note(`createFilesystem ${id}`);
      filesystems.add(id);
    },
    async deleteFilesystem(id) {
      note(`deleteFilesystem ${id}`);
      filesystems.delete(id);
    },
    async filesystemUsage() {
      answer();
      return 4096;
    },
    bootLog: async (id) => (store.read(id) === undefined ? '' : `machine ${id} booted\n`),
    ...(images === undefined ? {} : { images: async () => images }),
    watch(listener) {
      changed = listener;
      return () => {
        changed = () => {};
      };
    },
    close: async () => {},

    kill(id, reason) {
      const machine = store.read(id);
      if (machine !== undefined) store.write({ ...machine, running: false, reason });
      changed(id);
    },
    revive(id) {
      const machine = store.read(id);
      if (machine !== undefined) store.write({ ...machine, running: true, looksLeft: 0 });
    },
    plant(id) {
      store.write(make({ ...nobody, id }, '', 1));
    },
    goAway() {
      away = true;
    },
    comeBack() {
      away = false;
    },
    become(next) {
      report = { ...report, ...next };
    },
  };
}

const nobody: Omit<MachineSpec, 'id'> = {
  node: null,
  hostname: 'stranger',
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

interface Store {
  read(id: string): ScriptedMachine | undefined;
  write(machine: ScriptedMachine): void;
  remove(id: string): void;
  ids(): string[];
}

function inMemory(): Store {
  const machines = new Map<string, ScriptedMachine>();
  return {
    read: (id) => machines.get(id),
    write: (machine) => void machines.set(machine.id, machine),
    remove: (id) => void machines.delete(id),
    ids: () => [...machines.keys()],
  };
}

/** One directory per machine, replaced whole, so that a kill leaves the old record or the new one. */
function onDisk(folder: string): Store {
  mkdirSync(folder, { recursive: true });
  const place = (id: string) => join(folder, id);
  return {
    read(id) {
      try {
        return JSON.parse(readFileSync(join(place(id), 'machine.json'), 'utf8'));
      } catch {
        return undefined;
      }
    },
    write(machine) {
      mkdirSync(place(machine.id), { recursive: true });
      const file = join(place(machine.id), 'machine.json');
      writeFileSync(`${file}.new`, JSON.stringify(machine));
      renameSync(`${file}.new`, file);
    },
    remove: (id) => rmSync(place(id), { recursive: true, force: true }),
    ids: () => readdirSync(folder),
  };
}
