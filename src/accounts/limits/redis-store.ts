// Counters that several replicas share: one round trip to let a request in, one to settle it.

import { randomUUID } from 'node:crypto';
import { createScript, type SharedRedis } from '#lib/limits/redis.ts';
import { releaseScript, renewScript, reserveScript, settleScript } from './redis-scripts.ts';
import {
  type Amount,
  type LimitScope,
  type LimitStore,
  leaseMs,
  limitKinds,
  type Outcome,
  type Standing,
} from './store.ts';

interface Open {
  readonly member: string;
  readonly keys: readonly string[];
}

export function createRedisStore(shared: SharedRedis, heldMs = leaseMs): LimitStore {
  const { now, onError } = shared;
  const [reserving, releasing, settling, renewing] = [
    createScript(shared, reserveScript),
    createScript(shared, releaseScript),
    createScript(shared, settleScript),
    createScript(shared, renewScript),
  ];
  const replica = randomUUID();
  const open = new Map<number, Open>();
  let count = 0;
  const renewal = setInterval(renew, heldMs / 3).unref();

  async function reserve(
    scopes: readonly LimitScope[],
    ask: Amount,
    month: string,
  ): Promise<Outcome> {
    const number = ++count;
    const id = `${replica}-${number}`;
    const keys = scopes.flatMap(toKeys);
    const { tokens, costNano } = ask;
    const member = `${id}:${costNano}`;
    const answer = (await reserving(keys, [
      ...[now(), id, heldMs, tokens, costNano, month],
      ...scopes.flatMap(toArguments),
    ]).catch((error) => {
      release(keys, member, costNano);
      throw error;
    })) as number[];
    const outcome = toOutcome(scopes, answer);
    if (outcome.refused !== null) return outcome;
    open.set(number, { member, keys });
    return { ...outcome, settle };

    function settle(used: Amount): void {
      open.delete(number);
      const limits = scopes.map((one) => one.limits.tokensPerMinute ?? '');
      const change = used.tokens - tokens;
      settling(keys, [now(), id, change, costNano, used.costNano, month, ...limits]).catch(onError);
    }
  }

  async function look(
    scopes: readonly LimitScope[],
    { tokens, costNano }: Amount,
    month: string,
  ): Promise<Outcome> {
    const answer = await reserving(scopes.flatMap(toKeys), [
      ...[now(), '', heldMs, tokens, costNano, month],
      ...scopes.flatMap(toArguments),
    ]);
    return toOutcome(scopes, answer as number[]);
  }

  /**
   * A Redis that only hung carries out later what nobody waits for any more. It takes the commands of a connection
   * in their order, so this comes after. Where it fails, the lease ends.
   */
  function release(keys: readonly string[], member: string, costNano: number): void {
    releasing(keys, [now(), member, costNano]).catch(() => {});
  }

  /** Requests may run for longer than a lease. */
  function renew(): void {
    for (const { member, keys } of open.values()) {
      renewing(keys, [now(), member, heldMs]).catch(onError);
    }
  }

  return {
    reserve,
    look,
    async close() {
      clearInterval(renewal);
    },
  };
}

/** The braces keep an account's keys on one node of a cluster, where one script may use them all. */
function toKeys({ kind, id, accountId }: LimitScope): string[] {
  const key = `millrace:limits:{${accountId}}:${kind}:${id}`;
  return [key, `${key}:open`];
}

const toArguments = ({ limits, spentNano, elsewhereNano }: LimitScope): (string | number)[] => [
  limits.requestsPerMinute ?? '',
  limits.tokensPerMinute ?? '',
  limits.concurrentRequests ?? '',
  limits.monthlyBudgetNano ?? '',
  spentNano,
  elsewhereNano,
];

function toOutcome(scopes: readonly LimitScope[], answer: number[]): Outcome {
  const [refused = 0, limit = 0] = answer;
  const standings = scopes.map((_, index) => toStanding(answer.slice(2 + index * 5)));
  const kind = limitKinds[limit - 1];
  const by = kind === undefined ? null : { scope: refused - 1, limit: kind };
  return { refused: by, standings, settle() {} };
}

const toStanding = ([
  requestDebt = 0,
  tokenDebt = 0,
  open = 0,
  spentNano = 0,
  heldNano = 0,
]: number[]): Standing => ({ requestDebt, tokenDebt, open, spentNano, heldNano });
