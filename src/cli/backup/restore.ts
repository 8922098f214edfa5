// millrace restore: puts a backup into a data directory, or only checks that it could be.

import { join, resolve } from 'node:path';
import { Command } from 'commander';
import type { Manifest } from '#backup/manifest.ts';
import { keepOrphansFile } from '#backup/state-files.ts';
import { report } from '#cli/output.ts';
import {
  findInstallation,
  type InstallationOptions,
  withInstallation,
} from '#cli/server/installation.ts';
import { toMinute } from '#cli/time.ts';
import type { Config } from '#config/schema.ts';
import { notIncluded, watched, withoutPassword } from './report.ts';

interface RestoreFlags extends InstallationOptions {
  readonly force?: true;
  readonly check?: true;
  readonly json?: true;
}

export function restoreCommand(): Command {
  const command = new Command('restore')
    .description('Restore a backup into the data directory; stop the server first')
    .argument('<file>', 'Archive that `millrace backup` wrote')
    .option(
      '--force',
      'Replace the state that is there; it is moved to a folder in the data directory',
    )
    .option('--check', 'Only verify the archive; change nothing')
    .option('--json', 'Print JSON');
  return withInstallation(command).action(restore);
}

async function restore(file: string, options: RestoreFlags): Promise<void> {
  // Only these commands pay for loading SQLite and tar.
  const { restoreBackup, verifyBackup } = await import('#backup/restore.ts');
  if (options.check) {
    const manifest = await watched((watcher) => verifyBackup(file, watcher));
    const sound = `${resolve(file)} is sound: ${describe(manifest)}.`;
    return report({ file: resolve(file), ...manifest }, sound, options.json);
  }
  const config = findInstallation(options);
  const { manifest, aside } = await watched((watcher) =>
    restoreBackup(file, config.data_dir, {
      ...watcher,
      force: options.force === true,
      now: new Date(),
    }),
  );
  report(
    { data_dir: resolve(config.data_dir), aside, ...manifest },
    [
      `Restored into ${resolve(config.data_dir)}: ${describe(manifest)}.`,
      ...(aside === null ? [] : [`The earlier state is in ${aside}. Delete it when all is well.`]),
      `Not in a backup: ${notIncluded}.`,
      ...databaseAdvice(manifest, config),
      'Machines launched after the backup belong to no instance now. The server logs and keeps them;',
      `delete ${join(resolve(config.data_dir), keepOrphansFile)} to let it remove them.`,
    ].join('\n'),
    options.json,
  );
}

function describe({ files, created_at: at, millrace, schema }: Manifest): string {
  const paths = files.map(({ path }) => path).join(', ');
  const made = `saved ${toMinute(at)} UTC by Millrace ${millrace}`;
  return schema === null ? `${paths}; ${made}` : `${paths}; ${made}, schema ${schema}`;
}

function databaseAdvice({ database }: Manifest, { database: { url } }: Config): string[] {
  if (database === 'sqlite') {
    if (url === null) return [];
    return [
      'The backup holds a SQLite database, but the configuration names PostgreSQL, which the server will use instead.',
    ];
  }
  const address = url === null ? 'postgres://...' : withoutPassword(url);
  return [
    'The database of this backup is in PostgreSQL. Restore it as well:',
    `  pg_restore --clean --if-exists --no-owner --dbname='${address}' millrace.dump`,
  ];
}
