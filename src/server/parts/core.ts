// What every part of the server stands on: log, database, metrics, and the state shared with other servers.

import { type Logger, type LoggerOptions, pino } from 'pino';
import { Registry } from 'prom-client';
import { type Audit, createAudit } from '#accounts/audit/audit.ts';
import type { Config } from '#config/schema.ts';
import { DatabaseHealth } from '#db/health.ts';
import { openDatabase, sqliteFile } from '#db/open.ts';
import { type Checkpoints, createCheckpoints, emptyLog } from '#db/sqlite/checkpoints.ts';
import type { Database } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { createDiskSpace, type DiskSpace } from '#lib/computer/disk-space.ts';
import { isDatabaseUnavailable } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import { createSeal, readSealKey, type Seal } from '#lib/secrets/seal.ts';
import { createLogSink } from '#lib/telemetry/log-sink.ts';
import { watchHealth } from '#server/health-metrics.ts';
import { toLogOutputs } from '#server/options/log.ts';
import { openSharedState, type SharedState } from '#server/shared-state.ts';

export interface Core {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly db: Database;
  readonly health: DatabaseHealth;
  /** The disk of the data directory. */
  readonly disk: DiskSpace;
  /** The path of the SQLite file; null with PostgreSQL. */
  readonly sqlite: string | null;
  /** Null with PostgreSQL. */
  readonly checkpoints: Checkpoints | null;
  readonly audit: Audit;
  readonly metrics: Registry;
  readonly shared: SharedState;
  /** Encrypts secrets in the database. */
  readonly seal: Seal;
  /** Names this server process in the database and in Redis. */
  readonly processId: string;
  /** Call last: no other part may log or use the database afterwards. */
  close(): Promise<void>;
}

export async function openCore(config: Config, clock: Clock): Promise<Core> {
  const sink = createLogSink(toLogOutputs(config));
  const hooks: LoggerOptions['hooks'] = {
    logMethod(args, method) {
      // An outage is logged when it begins and when it ends, not by everything that tries again meanwhile.
      const { err } = args[0] as unknown as { err?: unknown };
      if (health.downMs === null || !isDatabaseUnavailable(err)) method.apply(this, args);
    },
  };
  const log = pino({ level: config.log.level, base: null, hooks }, sink);
  const { url, pool_size: poolSize } = config.database;
  const health = new DatabaseHealth(log);
  const db = await openDatabase({ url, poolSize, dataDir: config.data_dir }, log, health);
  const sqlite = url === null ? sqliteFile(config.data_dir) : null;
  const checkpoints = sqlite === null ? null : createCheckpoints(sqlite, log);
  const metrics = new Registry();
  const disk = createDiskSpace(config.data_dir);
  watchHealth(metrics, health, disk);
  return {
    config,
    clock,
    log,
    db,
    health,
    disk,
    sqlite,
    checkpoints,
    audit: createAudit(clock),
    metrics,
    shared: await openSharedState(config.redis.url, clock, { log, registry: metrics }),
    seal: createSeal(() => readSealKey(config.secret_key, config.data_dir)),
    processId: newId(),
    async close() {
      await checkpoints?.close();
      await db.destroy();
      try {
        if (sqlite !== null) emptyLog(sqlite);
      } catch (error) {
        log.warn({ err: error }, 'the write-ahead log was not emptied; the next start does it');
      }
      sink.close();
    },
  };
}
