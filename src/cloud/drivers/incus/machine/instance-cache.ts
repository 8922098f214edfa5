// This installation's machines as the daemon last reported them, kept fresh by its events. All machines are
// listed when the event stream connects and at an interval; one machine is fetched when an event names it.
// While the event stream is down, every lookup goes to the daemon.

import type { DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import { listenToEvents } from '#cloud/drivers/incus/daemon/events.ts';
import { type DaemonInstance, findId, instanceName, instancePath } from './instance.ts';

export interface InstanceCache {
  /** Returns undefined if the daemon has no such machine. */
  find(id: string): Promise<DaemonInstance | undefined>;
  /** Like `find`, but always asks the daemon. */
  refresh(id: string): Promise<DaemonInstance | undefined>;
  /** Lists all machines of this installation. Always asks the daemon. */
  list(): Promise<DaemonInstance[]>;
  watch(changed: (id: string | null) => void): () => void;
  close(): void;
}

export interface InstanceCacheOptions {
  readonly owner: string;
  readonly resyncMs: number;
  readonly log: (message: string) => void;
}

interface CacheState extends InstanceCacheOptions {
  readonly client: DaemonClient;
  readonly known: Map<string, DaemonInstance>;
  readonly watchers: Set<(id: string | null) => void>;
  /** Machines being fetched because of an event; `again` if another event named them meanwhile. */
  readonly fetching: Map<string, { again: boolean }>;
  /** Number of the newest request. If two responses are about the same machine, the one to the newer request counts. */
  lastRequest: number;
  /** Number of the newest request about each machine since the last list. */
  readonly requested: Map<string, number>;
  /** Number of the newest list request that has returned. */
  listed: number;
  /** Last request before the event stream connected: a change after its response may have been missed. */
  lastUnwatched: number;
  connected: boolean;
  /** True while `known` is complete and events keep it so. */
  fresh: boolean;
  retryTimer: NodeJS.Timeout | undefined;
  closed: boolean;
}

/** Pause before the machines are listed again, after a failure or a list that missed events. */
const retryMs = 1_000;

export function createInstanceCache(
  client: DaemonClient,
  options: InstanceCacheOptions,
): InstanceCache {
  const state: CacheState = {
    ...options,
    client,
    known: new Map(),
    watchers: new Set(),
    fetching: new Map(),
    lastRequest: 0,
    requested: new Map(),
    listed: 0,
    lastUnwatched: 0,
    connected: false,
    fresh: false,
    retryTimer: undefined,
    closed: false,
  };
  const events = listenToEvents(client, {
    changed: (name) => void handleChange(state, name),
    up() {
      state.connected = true;
      state.lastUnwatched = state.lastRequest;
      void resync(state);
    },
    down() {
      state.connected = false;
      state.fresh = false;
      state.log('the event stream was lost; every lookup goes to the daemon until it is back');
      notify(state, null);
    },
  });
  const timer = setInterval(() => void resync(state), options.resyncMs);
  timer.unref();
  return {
    list: () => listAll(state),
    refresh: (id) => fetchOne(state, instanceName(id)),
    async find(id) {
      const name = instanceName(id);
      // No event reports when a dead cluster member is back, so its machines are always fetched.
      const isLost = state.known.get(name)?.status === 'Error';
      if (!state.fresh || isLost || state.fetching.has(name)) return fetchOne(state, name);
      return state.known.get(name);
    },
    watch(watcher) {
      state.watchers.add(watcher);
      return () => void state.watchers.delete(watcher);
    },
    close() {
      state.closed = true;
      clearInterval(timer);
      clearTimeout(state.retryTimer);
      events.close();
      state.watchers.clear();
    },
  };
}

async function listAll(state: CacheState): Promise<DaemonInstance[]> {
  const { client, known, owner, requested } = state;
  state.lastRequest += 1;
  const request = state.lastRequest;
  const all = await client.get<DaemonInstance[]>('/1.0/instances', { recursion: '1' });
  const own = new Map(
    all.filter((one) => findId(one, owner) !== undefined).map((one) => [one.name, one]),
  );
  if (request < state.listed) return [...own.values()];
  state.listed = request;
  for (const name of new Set([...known.keys(), ...own.keys()])) {
    if ((requested.get(name) ?? 0) > request) continue;
    const one = own.get(name);
    if (one) known.set(name, one);
    else known.delete(name);
  }
  for (const [name, newest] of requested) if (newest < request) requested.delete(name);
  state.fresh = state.connected && request > state.lastUnwatched;
  return [...own.values()];
}

async function fetchOne(state: CacheState, name: string): Promise<DaemonInstance | undefined> {
  state.lastRequest += 1;
  const request = state.lastRequest;
  state.requested.set(name, request);
  const found = await state.client.find<DaemonInstance>(instancePath(name));
  const own = found && findId(found, state.owner) !== undefined ? found : undefined;
  if ((state.requested.get(name) ?? state.listed) > request) return own;
  if (own) state.known.set(name, own);
  else state.known.delete(name);
  return own;
}

async function handleChange(state: CacheState, name: string) {
  if (!name.startsWith(instanceName(''))) return;
  const current = state.fetching.get(name);
  if (current) {
    current.again = true;
    return;
  }
  const fetching = { again: true };
  state.fetching.set(name, fetching);
  try {
    while (fetching.again) {
      fetching.again = false;
      const before = state.known.get(name);
      const now = await fetchOne(state, name);
      const id = findId(now ?? before, state.owner);
      if (id !== undefined) notify(state, id);
    }
  } catch (error) {
    state.fresh = false;
    resyncSoon(state);
    if (!state.closed) state.log(`${name}: ${(error as Error).message}`);
  } finally {
    state.fetching.delete(name);
  }
}

function notify(state: CacheState, id: string | null) {
  for (const watcher of state.watchers) watcher(id);
}

async function resync(state: CacheState) {
  try {
    const before = new Map([...state.known].map(([name, one]) => [name, one.status]));
    const now = await listAll(state);
    const same =
      now.length === before.size && now.every((one) => before.get(one.name) === one.status);
    if (!same) notify(state, null);
  } catch (error) {
    state.fresh = false;
    if (!state.closed) state.log(`the machines could not be listed: ${(error as Error).message}`);
  }
  if (!state.fresh) resyncSoon(state);
}

function resyncSoon(state: CacheState) {
  if (!state.connected || state.closed) return;
  clearTimeout(state.retryTimer);
  state.retryTimer = setTimeout(() => void resync(state), retryMs);
  state.retryTimer.unref();
}
