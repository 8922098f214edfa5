// What the daemon says of our machines, kept in memory and fresh by its events: one look at everything when
// the events connect and once in a while, one at a single machine when it changed. While there are no
// events, every question is asked of the daemon itself.

import type { Client } from './client.ts';
import { listenToEvents } from './events.ts';
import { findId, type Instance, instanceName, instancePath } from './machine.ts';

export interface Observed {
  /** Undefined when there is none. */
  find(id: string): Promise<Instance | undefined>;
  /** Asks the daemon, whatever is known. */
  refresh(id: string): Promise<Instance | undefined>;
  /** All of ours, asked of the daemon. */
  list(): Promise<Instance[]>;
  watch(changed: (id: string | null) => void): () => void;
  close(): void;
}

export interface ObservedOptions {
  readonly owner: string;
  readonly resyncMs: number;
  readonly log: (message: string) => void;
}

export function observe(client: Client, options: ObservedOptions): Observed {
  const { owner, resyncMs, log } = options;
  const known = new Map<string, Instance>();
  const watchers = new Set<(id: string | null) => void>();
  /** Machines being looked at, and whether they changed again meanwhile. */
  const looking = new Map<string, { again: boolean }>();
  let connected = false;
  /** True when `known` has everything. */
  let fresh = false;
  let generation = 0;

  async function list(): Promise<Instance[]> {
    const mine = ++generation;
    const all = await client.get<Instance[]>('/1.0/instances', { recursion: '1' });
    const ours = all.filter((one) => findId(one, owner) !== undefined);
    // Events that came meanwhile know better than this list, and an older list than a newer one nothing.
    if (mine !== generation || looking.size > 0) return ours;
    known.clear();
    for (const one of ours) known.set(one.name, one);
    fresh = connected;
    return ours;
  }

  async function look(name: string): Promise<Instance | undefined> {
    generation += 1;
    const answer = await client.find<Instance>(instancePath(name));
    const ours = answer && findId(answer, owner) !== undefined ? answer : undefined;
    if (ours) known.set(name, ours);
    else known.delete(name);
    return ours;
  }

  async function changed(name: string) {
    if (!name.startsWith(instanceName(''))) return;
    const current = looking.get(name);
    if (current) {
      current.again = true;
      return;
    }
    const mine = { again: true };
    looking.set(name, mine);
    try {
      while (mine.again) {
        mine.again = false;
        const before = known.get(name);
        const now = await look(name);
        const id = findId(now ?? before, owner);
        if (id !== undefined) tell(id);
      }
    } catch (error) {
      fresh = false;
      log(`${name}: ${(error as Error).message}`);
    } finally {
      looking.delete(name);
    }
  }

  function tell(id: string | null) {
    for (const watcher of watchers) watcher(id);
  }

  async function resync() {
    try {
      const before = new Map([...known].map(([name, one]) => [name, one.status]));
      const now = await list();
      const same =
        now.length === before.size && now.every((one) => before.get(one.name) === one.status);
      if (!same) tell(null);
    } catch (error) {
      fresh = false;
      log(`the machines could not be listed: ${(error as Error).message}`);
    }
  }

  const events = listenToEvents(client, {
    changed: (name) => void changed(name),
    up() {
      connected = true;
      void resync();
    },
    down() {
      connected = false;
      fresh = false;
      log('the event stream was lost; asking until it is back');
      tell(null);
    },
  });
  const timer = setInterval(() => void resync(), resyncMs);
  timer.unref();

  return {
    list,
    refresh: (id) => look(instanceName(id)),
    async find(id) {
      const name = instanceName(id);
      if (!fresh || looking.has(name)) return look(name);
      return known.get(name);
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },
    close() {
      clearInterval(timer);
      events.close();
      watchers.clear();
    },
  };
}
