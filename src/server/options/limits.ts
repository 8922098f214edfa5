// Converts the configuration's limits, queue and retention into the options of the parts that enforce them.

import { changeLimits, unlimited } from '#accounts/limits/limit-set.ts';
import type { OtherServers } from '#accounts/limits/settings.ts';
import { leaseMs } from '#accounts/limits/store.ts';
import type { Config } from '#config/schema.ts';
import type { RoomBounds } from '#http/body/room.ts';
import type { FileLimits } from '#inference/apis/files/files.ts';
import type { StoreOptions } from '#inference/apis/responses/stored/store.ts';
import type { DiskSpace } from '#lib/computer/disk-space.ts';
import { isSingleServer } from './single-server.ts';

export const toSignInOptions = ({ accounts }: Config) => ({
  sessionDays: accounts.session_days,
  invitationDays: accounts.invitation_days,
  loginAttempts: accounts.login_attempts,
});

/** Limits of keys created from now on. */
export const toKeyDefaults = ({ limits }: Config) => changeLimits(unlimited, limits.key);

export const toAccountDefaults = ({ limits }: Config) => changeLimits(unlimited, limits.account);

/** A server is presumed dead after half a lease without a sign of life: leases are renewed every third. */
export const toOtherServers = (config: Config, processId: string): OtherServers | null =>
  isSingleServer(config)
    ? null
    : { processId, silentMs: config.redis.url === null ? null : leaseMs / 2 };

export const toOutageMs = ({ database }: Config) => database.outage_minutes * 60_000;

export const toSpoolBytes = ({ database }: Config) => database.outage_usage_mib * 2 ** 20;

export const toQueueLimits = ({ inference: { queue } }: Config) => ({
  maxLength: queue.length,
  maxWaitMs: queue.wait_seconds * 1000,
});

export const toBodyLimits = ({ inference }: Config) => ({
  maxBodyBytes: inference.max_body_mib * 2 ** 20,
  maxBodyValues: inference.max_body_values,
});

/** How often a stream without events shows that it lives. */
export const toKeepAliveMs = ({ inference }: Config) => inference.keep_alive_seconds * 1000;

/** Where nothing is configured, there is room for this many of the largest bodies. */
const maxSizedBodies = 32;

/** One caller may take half of the room. */
export function toRoomBounds({ inference }: Config): RoomBounds {
  const { large_bodies_mib: mib, max_body_mib: maxBodyMib } = inference;
  const maxBytes = (mib ?? maxBodyMib * maxSizedBodies) * 2 ** 20;
  return {
    maxBytes,
    maxCallerBytes: maxBytes / 2,
    maxWaiting: 512,
    maxCallerWaiting: 64,
    waitMs: 10_000,
  };
}

export const toUsageRetention = ({ usage }: Config) => ({
  requestDays: usage.request_days,
  hourDays: usage.hour_days,
  maxRows: usage.max_rows,
});

export const toBatchOptions = ({ inference: { batches } }: Config) => ({
  concurrency: batches.concurrency,
  priceFactor: batches.price_factor,
  maxLines: batches.max_lines,
});

/** The disk is known only if the database is on it. */
export function toFileLimits(
  { inference: { batches }, models, database }: Config,
  disk: DiskSpace,
): FileLimits {
  return {
    maxFileBytes: batches.max_file_mib * 2 ** 20,
    maxAccountBytes: batches.account_files_mib * 2 ** 20,
    keepMs: batches.keep_days * 86_400_000,
    freeBytes: database.url === null ? () => disk.freeBytes() : null,
    diskReserveBytes: models.disk_reserve_gib * 2 ** 30,
  };
}

/** What one response continues is bounded like a body: a client could send all of it instead. */
export const toStoreOptions = ({ inference }: Config): StoreOptions => ({
  keepMs: inference.responses.keep_days * 86_400_000,
  maxBytes: inference.responses.max_mib * 2 ** 20,
  maxContextBytes: inference.max_body_mib * 2 ** 20,
});
