// Counters that several servers share: one round trip to admit a request, one to settle it.

import { randomUUID } from 'node:crypto';
import { createScript, type SharedRedis } from '#lib/limits/redis.ts';
import { releaseScript, renewScript, reserveScript, settleScript } from './redis-scripts.ts';
import {
  type Amount,
  type LimitScope,
  type LimitStore,
  leaseMs,
  limitKinds,
  type ReserveResult,
  type ScopeState,
} from './store.ts';

/** A request that runs: its member in the sorted sets of open requests, and its keys. */
interface OpenRequest {
  readonly member: string;
  readonly keys: readonly string[];
}

export function createRedisStore(shared: SharedRedis, heldForMs = leaseMs): LimitStore {
  const { now, onError } = shared;
  const runReserve = createScript(shared, reserveScript);
  const runRelease = createScript(shared, releaseScript);
  const runSettle = createScript(shared, settleScript);
  const runRenew = createScript(shared, renewScript);
  const serverId = randomUUID();
  const open = new Map<number, OpenRequest>();
  let count = 0;
  const renewal = setInterval(renew, heldForMs / 3).unref();

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
    const number = ++count;
    const id = `${serverId}-${number}`;
    const keys = scopes.flatMap(toKeys);
    const { tokens, costNano } = wanted;
    const member = `${id}:${costNano}`;
    const result = await ask(id, scopes, wanted, month).catch((error) => {
      release(keys, member, costNano);
      throw error;
    });
    if (result.refused !== null) return result;
    open.set(number, { member, keys });
    const settle = (used: Amount) => {
      open.delete(number);
      const limits = scopes.map((one) => one.limits.tokensPerMinute ?? '');
      const change = used.tokens - tokens;
      const values = [now(), id, change, costNano, used.costNano, month, ...limits];
      runSettle(keys, values).catch(onError);
    };
    return { ...result, settle };
  }

  /**
   * Undoes a reservation whose reply was not waited for: a Redis that only hung executes it later. Redis executes
   * the commands of a connection in order, so this comes after it. If this fails too, the lease ends.
   */
  function release(keys: readonly string[], member: string, costNano: number): void {
    runRelease(keys, [now(), member, costNano]).catch(() => {});
  }

  /** A request may run for longer than a lease. */
  function renew(): void {
    for (const { member, keys } of open.values()) {
      runRenew(keys, [now(), member, heldForMs]).catch(onError);
    }
  }

  return {
    reserve,
    check: (scopes, wanted, month) => ask('', scopes, wanted, month),
    async close() {
      clearInterval(renewal);
    },
  };
}

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
  return { refused: by, states, settle() {} };
}

const toState = ([
  requestDebt = 0,
  tokenDebt = 0,
  open = 0,
  spentNano = 0,
  heldNano = 0,
]: number[]): ScopeState => ({ requestDebt, tokenDebt, open, spentNano, heldNano });
