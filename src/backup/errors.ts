// Everything that can go wrong with a backup, in sentences for the operator who runs the command.

export class BackupError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'BackupError';
  }
}

export const fileExists = (file: string) =>
  new BackupError(`${file} exists already. Choose another name, or add --force to replace it.`);

export const notWritable = (file: string, reason: string) =>
  new BackupError(`The backup can't be written to ${file}: ${reason}.`);

export const noFolder = (folder: string) =>
  new BackupError(`The folder ${folder} does not exist. Create it, or name another file.`);

export const noDatabase = (file: string) =>
  new BackupError(
    `There is no database at ${file}. Name the server's directory with --data-dir or its ` +
      'configuration with --config.',
  );

export const notCopied = (file: string, reason: string, cause?: unknown) =>
  new BackupError(`The database ${file} can't be copied: ${reason}.`, cause);

export const nothingToSave = (dataDir: string) =>
  new BackupError(`There are no keys or ids in ${dataDir} to back up.`);

export const notReadable = (file: string, reason: string) =>
  new BackupError(`${file} can't be read: ${reason}.`);

export const notABackup = (file: string) =>
  new BackupError(`${file} is not a Millrace backup, or its beginning is damaged.`);

export const damaged = (file: string, what: string) =>
  new BackupError(`${file} is damaged: ${what}. Nothing was changed.`);

export const notUnpacked = (file: string, reason: string) =>
  new BackupError(`${file} can't be unpacked: ${reason}. Nothing was changed.`);

export const tooNew = (made: { millrace: string; schema: string }, known: string) =>
  new BackupError(
    `This backup was made by Millrace ${made.millrace} with the database schema ${made.schema}, ` +
      `but this version knows schemas up to ${known}. Install Millrace ${made.millrace} or later, ` +
      'then restore.',
  );

export const formatTooNew = (version: string) =>
  new BackupError(
    `This backup was made by Millrace ${version} in a newer format. Install Millrace ${version} or ` +
      'later, then restore.',
  );

export const serverRuns = (dataDir: string) =>
  new BackupError(`A server is running on ${dataDir}. Stop it first, then restore.`);

export const hasState = (dataDir: string, files: readonly string[]) =>
  new BackupError(
    `${dataDir} holds state already (${files.join(', ')}). Restore into another directory with ` +
      '--data-dir, or add --force to replace this state; it is then kept aside.',
  );
