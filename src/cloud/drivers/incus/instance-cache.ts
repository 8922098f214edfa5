// What the daemon says of our machines, kept in memory and fresh by its events: one look at everything when
// the events connect and once in a while, one at a single machine when it changed. While there are no
// events, every question is asked of the daemon itself.

import type { DaemonClient } from './client.ts';
import { listenToEvents } from './events.ts';
import { type DaemonInstance, findId, instanceName, instancePath } from './instance.ts';

export interface InstanceCache {
  /** Undefined when there is none. */
  find(id: string): Promise<DaemonInstance | undefined>;
  /** Asks the daemon, whatever is known. */
  refresh(id: string): Promise<DaemonInstance | undefined>;
  /** All of ours, asked of the daemon. */
  list(): Promise<DaemonInstance[]>;
  watch(changed: (id: string | null) => void): () => void;
  close(): void;
}

export interface InstanceCacheOptions {
  readonly owner: string;
  readonly resyncMs: number;
  readonly log: (message: string) => void;
}

/** When a look failed, or was begun before the events came. */
const retryMs = 1_000;

export function createInstanceCache(
  client: DaemonClient,
  options: InstanceCacheOptions,
): InstanceCache {
  const { owner, resyncMs, log } = options;
  const known = new Map<string, DaemonInstance>();
  const watchers = new Set<(id: string | null) => void>();
  /** Machines being looked at, and whether they changed again meanwhile. */
  const looking = new Map<string, { again: boolean }>();
  /** Questions are numbered: the newest answer about a machine counts, in whatever order they come. */
  let questions = 0;
  const asked = new Map<string, number>();
  let listed = 0;
  /** The last question before the events connected; what it told may be outdated without our knowing. */
  let untold = 0;
  let connected = false;
  /** True when `known` has everything. */
  let fresh = false;
  let retry: NodeJS.Timeout | undefined;
  let closed = false;

  async function list(): Promise<DaemonInstance[]> {
    questions += 1;
    const mine = questions;
    const all = await client.get<DaemonInstance[]>('/1.0/instances', { recursion: '1' });
    const ours = new Map(
      all.filter((one) => findId(one, owner) !== undefined).map((one) => [one.name, one]),
    );
    if (mine < listed) return [...ours.values()];
    listed = mine;
    for (const name of new Set([...known.keys(), ...ours.keys()])) {
      if ((asked.get(name) ?? 0) > mine) continue;
      const one = ours.get(name);
      if (one) known.set(name, one);
      else known.delete(name);
    }
    for (const [name, question] of asked) if (question < mine) asked.delete(name);
    fresh = connected && mine > untold;
    return [...ours.values()];
  }

  async function look(name: string): Promise<DaemonInstance | undefined> {
    questions += 1;
    const mine = questions;
    asked.set(name, mine);
    const answer = await client.find<DaemonInstance>(instancePath(name));
    const ours = answer && findId(answer, owner) !== undefined ? answer : undefined;
    if ((asked.get(name) ?? listed) > mine) return ours;
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
      resyncSoon();
      if (!closed) log(`${name}: ${(error as Error).message}`);
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
      if (!closed) log(`the machines could not be listed: ${(error as Error).message}`);
    }
    if (!fresh) resyncSoon();
  }

  function resyncSoon() {
    if (!connected || closed) return;
    clearTimeout(retry);
    retry = setTimeout(() => void resync(), retryMs);
    retry.unref();
  }

  const events = listenToEvents(client, {
    changed: (name) => void changed(name),
    up() {
      connected = true;
      untold = questions;
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
      // What a dead member's machines are doing is asked until it is back.
      const isLost = known.get(name)?.status === 'Error';
      if (!fresh || isLost || looking.has(name)) return look(name);
      return known.get(name);
    },
    watch(watcher) {
      watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },
    close() {
      closed = true;
      clearInterval(timer);
      clearTimeout(retry);
      events.close();
      watchers.clear();
    },
  };
}
