// millrace config: check a file without starting, and print what an editor or a person needs.

import { Command } from 'commander';
import { CliError, printJson } from '#cli/output.ts';
import { renderExample } from '#config/example.ts';
import { ConfigError, loadConfig } from '#config/load.ts';
import { toFileSchema } from '#config/schema.ts';

export function configCommand(): Command {
  return new Command('config')
    .description('check and explain the configuration')
    .addCommand(
      new Command('check')
        .description('check the file and the environment without starting')
        .argument('[file]', 'millrace.yaml by default')
        .action(check),
    )
    .addCommand(
      new Command('example')
        .description('print every setting at its default, as YAML')
        .action(() => void process.stdout.write(renderExample())),
    )
    .addCommand(
      new Command('schema')
        .description('print the JSON Schema of the file')
        .action(() => printJson(toFileSchema())),
    );
}

function check(file: string | undefined): void {
  const loaded = orExplain(() => loadConfig({ config: file }));
  console.log(loaded.file === null ? 'No file: the defaults are used.' : `${loaded.file} is fine.`);
}

/** Problems of the configuration are the reader's to fix: sentences, no stack. */
export function orExplain<Value>(load: () => Value): Value {
  try {
    return load();
  } catch (error) {
    if (error instanceof ConfigError) throw new CliError(error.message);
    throw error;
  }
}
