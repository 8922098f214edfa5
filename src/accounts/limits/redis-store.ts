// Counters that several servers share: one round trip to admit a request, one to settle it.

import { randomUUID } from 'node:crypto';
import { createScript, type Script, type SharedRedis } from '#lib/limits/redis.ts';
import { releaseScript, renewScript, reserveScript, settleScript } from './redis-scripts.ts';
import {
  type Amount,
  type LimitScope,
  type LimitStore,
  leaseMs,
  limitKinds,
  nothingOpen,
  type OpenReservation,
  type ReserveResult,
  type ScopeState,
  type Ticket,
} from './store.ts';

export function createRedisStore(shared: SharedRedis, heldForMs = leaseMs): LimitStore {
  const { now } = shared;
  const runReserve = createScript(shared, reserveScript);
  const leases = new Leases(shared, heldForMs);

  /** Without an id, nothing is taken. */
  async function ask(id: string, scopes: readonly LimitScope[], wanted: Amount, month: string) {
    const { tokens, costNano } = wanted;
    const reply = await runReserve(scopes.flatMap(toKeys), [
      ...[now(), id, heldForMs, tokens, costNano, month],
      ...scopes.flatMap(toArguments),
    ]);
    return toResult(scopes, reply as number[]);
  }

  async function reserve(
    scopes: readonly LimitScope[],
    wanted: Amount,
    month: string,
  ): Promise<ReserveResult> {
    const ticket = { id: leases.newId(), ...wanted };
    const result = await ask(ticket.id, scopes, wanted, month).catch((error) => {
      leases.release(scopes, ticket);
      throw error;
    });
    if (result.refused !== null) return result;
    return { ...result, id: ticket.id, ...leases.open(scopes, ticket, month) };
  }

  async function takeOver(
    scopes: readonly LimitScope[],
    given: Ticket,
    month: string,
  ): Promise<OpenReservation> {
    // What was counted in the memory of a server is unknown to Redis.
    const ticket = given.id === '' ? { ...given, id: leases.newId(), tokens: 0 } : given;
    await leases.renew(toLease(scopes, ticket));
    return leases.open(scopes, ticket, month);
  }

  return {
    reserve,
    check: (scopes, wanted, month) => ask('', scopes, wanted, month),
    takeOver,
    close: async () => leases.close(),
  };
}

/** A request that runs: its member in the sorted sets of open requests, and its keys. */
interface Lease {
  readonly member: string;
  readonly keys: readonly string[];
}

const toLease = (scopes: readonly LimitScope[], { id, costNano }: Ticket): Lease => ({
  member: `${id}:${costNano}`,
  keys: scopes.flatMap(toKeys),
});

/** The requests that this server runs, whose leases it renews. */
class Leases {
  readonly #shared: SharedRedis;
  readonly #heldForMs: number;
  readonly #serverId = randomUUID();
  readonly #open = new Map<string, Lease>();
  readonly #timer: NodeJS.Timeout;
  readonly #runRelease: Script;
  readonly #runSettle: Script;
  readonly #runRenew: Script;
  #count = 0;

  constructor(shared: SharedRedis, heldForMs: number) {
    this.#shared = shared;
    this.#heldForMs = heldForMs;
    this.#runRelease = createScript(shared, releaseScript);
    this.#runSettle = createScript(shared, settleScript);
    this.#runRenew = createScript(shared, renewScript);
    this.#timer = setInterval(() => this.#renewAll(), heldForMs / 3).unref();
  }

  newId(): string {
    return `${this.#serverId}-${++this.#count}`;
  }

  open(scopes: readonly LimitScope[], ticket: Ticket, month: string): OpenReservation {
    const { now, onError } = this.#shared;
    const lease = toLease(scopes, ticket);
    this.#open.set(ticket.id, lease);
    const leave = () => void this.#open.delete(ticket.id);
    const settle = (used: Amount) => {
      leave();
      const values = [now(), ...toSettled(ticket, used, month, scopes)];
      this.#runSettle(lease.keys, values).catch(onError);
    };
    return { settle, leave };
  }

  /**
   * Undoes a reservation whose reply was not waited for: a Redis that only hung executes it later. Redis executes
   * the commands of a connection in order, so this comes after it. If this fails too, the lease ends.
   */
  release(scopes: readonly LimitScope[], ticket: Ticket): void {
    const { member, keys } = toLease(scopes, ticket);
    this.#runRelease(keys, [this.#shared.now(), member, ticket.costNano]).catch(() => {});
  }

  renew({ member, keys }: Lease): Promise<unknown> {
    return this.#runRenew(keys, [this.#shared.now(), member, this.#heldForMs]);
  }

  /** A request may run for longer than a lease. */
  #renewAll(): void {
    for (const lease of this.#open.values()) this.renew(lease).catch(this.#shared.onError);
  }

  close(): void {
    clearInterval(this.#timer);
  }
}

const toSettled = (
  { id, tokens, costNano }: Ticket,
  used: Amount,
  month: string,
  scopes: readonly LimitScope[],
): (string | number)[] => [
  ...[id, used.tokens - tokens, costNano, used.costNano, month],
  ...scopes.map(({ limits }) => limits.tokensPerMinute ?? ''),
];

/** The braces put all keys of an account on one node of a cluster, so that one script may use them. */
function toKeys({ kind, id, accountId }: LimitScope): string[] {
  const key = `millrace:limits:{${accountId}}:${kind}:${id}`;
  return [key, `${key}:open`];
}

const toArguments = ({ limits, spentNano, otherServersNano }: LimitScope): (string | number)[] => [
  limits.requestsPerMinute ?? '',
  limits.tokensPerMinute ?? '',
  limits.concurrentRequests ?? '',
  limits.monthlyBudgetNano ?? '',
  spentNano,
  otherServersNano,
];

function toResult(scopes: readonly LimitScope[], reply: number[]): ReserveResult {
  const [refused = 0, limit = 0] = reply;
  const states = scopes.map((_, index) => toState(reply.slice(2 + index * 5)));
  const kind = limitKinds[limit - 1];
  const by = kind === undefined ? null : { scope: refused - 1, limit: kind };
  return { id: '', refused: by, states, ...nothingOpen };
}

const toState = ([
  requestDebt = 0,
  tokenDebt = 0,
  open = 0,
  spentNano = 0,
  heldNano = 0,
]: number[]): ScopeState => ({ requestDebt, tokenDebt, open, spentNano, heldNano });
