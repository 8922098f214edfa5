// Counters that several replicas share: one round trip to let a request in, one to settle it.

import { createHash, randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { Clock } from '../../lib/clock.ts';
import { renewScript, reserveScript, settleScript } from './redis-scripts.ts';
import {
  type Amount,
  type LimitScope,
  type LimitStore,
  limitKinds,
  type Outcome,
  type Standing,
} from './store.ts';

export interface RedisStoreOptions {
  /** Null for Redis' own, the only one that all replicas share. */
  clock: Clock | null;
  /** How long what a dead replica held stays held. */
  leaseMs?: number;
  onError(error: unknown): void;
}

interface Script {
  readonly text: string;
  readonly sha: string;
}

interface Open {
  readonly member: string;
  readonly keys: readonly string[];
}

const toScript = (text: string): Script => ({
  text,
  sha: createHash('sha1').update(text).digest('hex'),
});
const reserving = toScript(reserveScript);
const settling = toScript(settleScript);
const renewing = toScript(renewScript);
const scripts = [reserving, settling, renewing];

export function createRedisStore(redis: Redis, options: RedisStoreOptions): LimitStore {
  const { clock, leaseMs = 30_000, onError } = options;
  const replica = randomUUID();
  const open = new Map<number, Open>();
  let count = 0;
  const now = () => (clock === null ? '' : clock.now());
  const renewal = setInterval(renew, leaseMs / 3).unref();
  // Ahead of their first use, so that what is sent first is also done first.
  redis.on('ready', load);
  if (redis.status === 'ready') load();

  async function reserve(
    scopes: readonly LimitScope[],
    ask: Amount,
    month: string,
  ): Promise<Outcome> {
    const number = ++count;
    const id = `${replica}-${number}`;
    const keys = scopes.flatMap(toKeys);
    const { tokens, costNano } = ask;
    const answer = (await run(reserving, keys, [
      ...[now(), id, leaseMs, tokens, costNano, month],
      ...scopes.flatMap(toArguments),
    ])) as number[];
    const [refused = 0, limit = 0] = answer;
    const standings = scopes.map((_, index) => toStanding(answer.slice(2 + index * 5)));
    const kind = limitKinds[limit - 1];
    if (kind !== undefined) {
      return { refused: { scope: refused - 1, limit: kind }, standings, settle() {} };
    }
    open.set(number, { member: `${id}:${costNano}`, keys });
    return { refused: null, standings, settle };

    function settle(used: Amount): void {
      open.delete(number);
      const limits = scopes.map((one) => one.limits.tokensPerMinute ?? '');
      const change = used.tokens - tokens;
      run(settling, keys, [now(), id, change, costNano, used.costNano, month, ...limits]).catch(
        onError,
      );
    }
  }

  function load(): void {
    for (const { text } of scripts) redis.script('LOAD', text).catch(onError);
  }

  /** Requests may run for longer than a lease. */
  function renew(): void {
    for (const { member, keys } of open.values()) {
      run(renewing, keys, [now(), member, leaseMs]).catch(onError);
    }
  }

  async function run(
    { text, sha }: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> {
    try {
      return await redis.evalsha(sha, keys.length, ...keys, ...args);
    } catch (error) {
      // Somebody had it forget its scripts.
      if (!(error as Error).message.startsWith('NOSCRIPT')) throw error;
      return redis.eval(text, keys.length, ...keys, ...args);
    }
  }

  return {
    reserve,
    async close() {
      clearInterval(renewal);
      redis.off('ready', load);
    },
  };
}

/** The braces keep an account's keys on one node of a cluster, where one script may use them all. */
function toKeys({ kind, id, accountId }: LimitScope): string[] {
  const key = `millrace:limits:{${accountId}}:${kind}:${id}`;
  return [key, `${key}:open`];
}

const toArguments = ({ limits, spentNano }: LimitScope): (string | number)[] => [
  limits.requestsPerMinute ?? '',
  limits.tokensPerMinute ?? '',
  limits.concurrentRequests ?? '',
  limits.monthlyBudgetNano ?? '',
  spentNano,
];

const toStanding = ([
  requestDebt = 0,
  tokenDebt = 0,
  open = 0,
  spentNano = 0,
  heldNano = 0,
]: number[]): Standing => ({ requestDebt, tokenDebt, open, spentNano, heldNano });
