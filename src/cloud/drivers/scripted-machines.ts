// The records that stand for machines of the scripted driver, in memory or in a folder that outlives the
// process.

import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { MachineSpec } from './driver.ts';

export interface ScriptedMachine {
  id: string;
  spec: MachineSpec;
  running: boolean;
  /** Number of inspections until the machine runs. */
  looksLeft: number;
  /** Number of `terminate` calls needed to remove the machine; 0 and 1 both mean one call. */
  clings: number;
  hostKey: string;
  /** Number of starts, the first included. */
  boots: number;
  /** Why the machine is stopped; empty while it runs. */
  reason: string;
}

export interface ScriptedMachines {
  read(id: string): ScriptedMachine | undefined;
  write(machine: ScriptedMachine): void;
  remove(id: string): void;
  ids(): string[];
}

export function createMemoryMachines(): ScriptedMachines {
  const machines = new Map<string, ScriptedMachine>();
  return {
    read: (id) => machines.get(id),
    write: (machine) => void machines.set(machine.id, machine),
    remove: (id) => void machines.delete(id),
    ids: () => [...machines.keys()],
  };
}

/** Keeps one directory per machine. A record is replaced by a rename: a kill leaves the old or the new one. */
export function openMachineFolder(folder: string): ScriptedMachines {
  mkdirSync(folder, { recursive: true });
  const directoryOf = (id: string) => join(folder, id);
  return {
    read(id) {
      try {
        return JSON.parse(readFileSync(join(directoryOf(id), 'machine.json'), 'utf8'));
      } catch {
        return undefined;
      }
    },
    write(machine) {
      mkdirSync(directoryOf(machine.id), { recursive: true });
      const file = join(directoryOf(machine.id), 'machine.json');
      writeFileSync(`${file}.new`, JSON.stringify(machine));
      renameSync(`${file}.new`, file);
    },
    remove: (id) => rmSync(directoryOf(id), { recursive: true, force: true }),
    ids: () => readdirSync(folder),
  };
}
