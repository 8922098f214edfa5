// The files of a data directory that a backup holds: what Millrace wrote itself and can't make again. Weights,
// disks of machines and filesystems stay out because of their size.

export const databaseFile = 'millrace.db';

/** `models/store-id` is what the database knows this server's weights by, so that they can be pulled again. */
const smallFiles = [
  'secret.key',
  'host-id',
  'incus-client.crt',
  'incus-client.key',
  'models/store-id',
] as const;

/**
 * Written by a restore. While it exists, the server keeps machines that belong to no instance: they may have been
 * launched after the backup.
 */
export const keepOrphansFile = 'keep-orphans';

/** Paths within the data directory. */
export const stateFiles = [databaseFile, ...smallFiles] as const;

/** Files that SQLite keeps beside a database. It would apply an old one to a restored database. */
export const databaseSideFiles = ['-wal', '-shm', '-journal'].map(
  (ending) => `${databaseFile}${ending}`,
);
