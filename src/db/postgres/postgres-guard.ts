// A pool of PostgreSQL connections that notices an outage. From then on every query fails at once, instead of after
// the pool's timeouts, and one probe at a time looks for the end of the outage: waiting requests don't pile up and
// nothing else reconnects.

import { Socket } from 'node:net';
import type { PostgresPool, PostgresPoolClient, PostgresQueryResult } from 'kysely';
import pg from 'pg';
import type { DatabaseHealth } from '#db/health.ts';
import { databaseUnavailable, diskFull, isDatabaseUnavailable } from '#lib/errors.ts';

/** If no query is answered for this long while some wait, a probe finds out whether it is an outage. */
const silenceMs = 1000;
const probeMs = 2000;
/** A timeout that fires this much later than it should is due to this process, not to the database. */
const lateMs = 500;
const retryMs = 500;

export class GuardedPool implements PostgresPool {
  readonly options: pg.PoolOptions;
  readonly #config: pg.PoolConfig;
  readonly #health: DatabaseHealth;
  readonly #pool: pg.Pool;
  readonly #sockets = new Set<Socket>();
  readonly #watchdog: NodeJS.Timeout;
  #waiting = 0;
  /** When a query was last answered, or began to wait alone, by `performance.now`. */
  #answeredAt = 0;
  #outage: { cause: unknown } | null = null;
  #isProbing = false;
  #isClosed = false;

  constructor(config: pg.PoolConfig, health: DatabaseHealth) {
    this.#config = config;
    this.#health = health;
    this.#pool = new pg.Pool({ ...config, stream: () => this.#openSocket() });
    this.options = this.#pool.options;
    // An idle connection that breaks is dropped and replaced. The next query reports a failure that persists.
    this.#pool.on('error', () => {});
    // A connection that breaks in use fails its query. Without a listener, the error event would end the process.
    this.#pool.on('connect', (client) => client.on('error', () => {}));
    this.#watchdog = setInterval(() => {
      const isSilent = performance.now() - this.#answeredAt > silenceMs;
      if (this.#waiting > 0 && isSilent) void this.#probe();
    }, silenceMs).unref();
  }

  async connect(): Promise<PostgresPoolClient> {
    return guardClient(await this.#ask(() => this.#pool.connect()), this.#ask);
  }

  async end(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#watchdog);
    await this.#pool.end();
  }

  #openSocket(): Socket {
    const socket = new Socket();
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    // The pool opens connections for queries that waited for one when the outage was noticed.
    if (this.#outage !== null) setImmediate(() => socket.destroy());
    return socket;
  }

  readonly #ask: Ask = async (question) => {
    if (this.#outage !== null) throw databaseUnavailable(this.#outage.cause);
    if (this.#waiting++ === 0) this.#answeredAt = performance.now();
    try {
      const answer = await question();
      this.#answeredAt = performance.now();
      return answer;
    } catch (error) {
      const kind = toFailureKind(error);
      if (kind === 'outage') void this.#probe();
      if (kind === 'disk_full') throw diskFull(error);
      throw kind === 'query' ? error : databaseUnavailable(error);
    } finally {
      this.#waiting--;
    }
  };

  async #probe(): Promise<void> {
    if (this.#isProbing || this.#isClosed) return;
    this.#isProbing = true;
    const startedAt = performance.now();
    const failure = await findFailure(this.#config);
    this.#isProbing = false;
    const wasBlocked = performance.now() - startedAt > probeMs + lateMs;
    if (failure === null) this.#endOutage();
    else if (this.#outage === null && !wasBlocked) this.#beginOutage(failure.cause);
    if (failure !== null && !this.#isClosed) setTimeout(() => this.#probe(), retryMs).unref();
  }

  #beginOutage(cause: unknown): void {
    this.#outage = { cause };
    this.#health.began(cause);
    // Fails every query that waits. Idle connections go too: after an outage they may be dead without knowing it.
    for (const socket of this.#sockets) socket.destroy();
  }

  #endOutage(): void {
    this.#answeredAt = performance.now();
    if (this.#outage === null) return;
    this.#outage = null;
    this.#health.ended();
  }
}

type Ask = <Answer>(question: () => Promise<Answer>) => Promise<Answer>;

function guardClient(client: pg.PoolClient, ask: Ask): PostgresPoolClient {
  let isBroken = false;
  async function query<Row>(
    text: string,
    values: readonly unknown[],
  ): Promise<PostgresQueryResult<Row>> {
    try {
      const result: unknown = await ask(() => client.query(text, [...values]));
      return result as PostgresQueryResult<Row>;
    } catch (error) {
      // After a timeout, pg would give the connection to the next query while the old one still runs on it.
      isBroken ||= isDatabaseUnavailable(error);
      throw error;
    }
  }
  return {
    // Kysely's second form takes a cursor, which is not configured.
    query: query as PostgresPoolClient['query'],
    release: (discard?: boolean) => client.release(isBroken || discard === true),
  };
}

/** Connects anew, because that is what shows that the database is back. Returns null if it answers. */
async function findFailure(config: pg.PoolConfig): Promise<{ cause: unknown } | null> {
  const timeouts = { connectionTimeoutMillis: probeMs, query_timeout: probeMs };
  const client = new pg.Client({ ...config, ...timeouts });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('select 1');
    return null;
  } catch (cause) {
    return toFailureKind(cause) === 'outage' ? { cause } : null;
  } finally {
    // Not awaited: a silent database does not confirm it.
    client.end().catch(() => {});
  }
}

type FailureKind = 'outage' | 'overloaded' | 'disk_full' | 'query';

/** Any other error than the database's own means that it was not reached, or did not answer in time. */
function toFailureKind(error: unknown): FailureKind {
  if (!(error instanceof pg.DatabaseError)) return 'outage';
  const { code = '' } = error;
  if (code === '53100') return 'disk_full';
  // Too many connections; or a standby that does not take writes, for a moment after a failover.
  if (code === '53300' || code === '25006') return 'overloaded';
  // Connection exceptions, and a database that is starting or shutting down.
  return /^08|^57P/.test(code) ? 'outage' : 'query';
}
