// millrace backup: saves the database and the keys of a server, running or not, to one file.

import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command } from 'commander';
import { report } from '#cli/output.ts';
import {
  findInstallation,
  type InstallationOptions,
  withInstallation,
} from '#cli/server/installation.ts';
import type { Config } from '#config/schema.ts';
import { toSize } from '#lib/text/format.ts';
import millrace from '../../../package.json' with { type: 'json' };
import { notIncluded, watched, withoutPassword } from './report.ts';

export function backupCommand(): Command {
  const command = new Command('backup')
    .description('Save the database and the keys of this server to one file')
    .argument('<file>', 'Archive to write, such as millrace.tar.gz')
    .option('--force', 'Replace the file if it exists')
    .option('--json', 'Print JSON');
  return withInstallation(command)
    .addHelpText(
      'after',
      `\nThe server may run meanwhile. Not included: ${notIncluded}.\nA PostgreSQL database is saved with pg_dump; the command prints how.`,
    )
    .action(save);
}

async function save(
  file: string,
  options: InstallationOptions & { force?: true; json?: true },
): Promise<void> {
  const config = findInstallation(options);
  // Only these commands pay for loading SQLite and tar.
  const { createBackup } = await import('#backup/create.ts');
  const source = {
    dataDir: config.data_dir,
    database: config.database.url === null ? 'sqlite' : 'postgresql',
    version: millrace.version,
  } as const;
  const manifest = await watched((watcher) =>
    createBackup(source, file, { ...watcher, force: options.force === true, now: new Date() }),
  );
  const paths = manifest.files.map(({ path }) => path).join(', ');
  report(
    { file: resolve(file), ...manifest },
    [
      `Saved ${paths} to ${resolve(file)} (${toSize(statSync(file).size)}).`,
      ...(manifest.schema === null ? [] : [`Database schema: ${manifest.schema}.`]),
      `Not included: ${notIncluded}.`,
      ...elsewhere(config),
      'The file holds keys that can be used. Store it like a password.',
    ].join('\n'),
    options.json,
  );
}

/** What belongs to the installation but is not in the data directory. */
function elsewhere({ database, secret_key: secretKey }: Config): string[] {
  const lines: string[] = [];
  if (secretKey !== null) {
    lines.push(
      'The secret key comes from the configuration or MILLRACE_SECRET_KEY. Keep it as well: without it the keys of backends are lost.',
    );
  }
  if (database.url !== null) {
    lines.push(
      'The database is in PostgreSQL and not in this file. Save it as well:',
      `  pg_dump --format=custom --no-owner --file=millrace.dump '${withoutPassword(database.url)}'`,
    );
  }
  return lines;
}
