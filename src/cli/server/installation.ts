// Which installation a command works on that touches the server's own files: found as `millrace serve` finds it.

import type { Command } from 'commander';
import { orExplain } from '#cli/config/command.ts';
import { loadConfig } from '#config/load.ts';
import type { Config } from '#config/schema.ts';

export interface InstallationOptions {
  readonly config?: string;
  readonly dataDir?: string;
  readonly databaseUrl?: string;
}

/** Adds the options of commands that need the data directory alone. */
export const withDataDirectory = (command: Command): Command =>
  command
    .option(
      '--config <file>',
      'Configuration file of the server (default: millrace.yaml, if it exists); also MILLRACE_CONFIG',
    )
    .option('--data-dir <path>', 'Data directory of the server; also MILLRACE_DATA_DIR');

/** Adds the options of commands that also need the database. */
export const withInstallation = (command: Command): Command =>
  withDataDirectory(command).option(
    '--database-url <url>',
    'PostgreSQL database of the server; also DATABASE_URL',
  );

export function findInstallation({ config, dataDir, databaseUrl }: InstallationOptions): Config {
  const flags = { config, data_dir: dataDir, 'database.url': databaseUrl };
  return orExplain(() => loadConfig(flags)).config;
}
