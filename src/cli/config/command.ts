// millrace config: checks a configuration without starting the server, and prints the example file and the
// JSON Schema.

import { Command } from 'commander';
import { nounCommand } from '#cli/noun.ts';
import { CliError, printJson, report } from '#cli/output.ts';
import { ConfigError } from '#config/error.ts';
import { renderExample } from '#config/example.ts';
import { loadConfig } from '#config/load.ts';
import { toFileSchema } from '#config/schema.ts';

export const configCommand = (): Command =>
  nounCommand('config', 'Check the configuration, print an example or its JSON Schema', [
    new Command('check')
      .description('Check the file and the environment without starting the server')
      .argument('[file]', 'Configuration file (default: millrace.yaml, if it exists)')
      .option('--config <file>', 'The same, as for other commands')
      .option('--json', 'Print JSON')
      .action(check),
    new Command('example')
      .description('Print every setting with its default and description, as YAML')
      .action(() => void process.stdout.write(renderExample())),
    new Command('schema')
      .description('Print the JSON Schema of the configuration file, for editors')
      .action(() => printJson(toFileSchema())),
  ]);

function check(file: string | undefined, { config, json }: { config?: string; json?: true }): void {
  const loaded = orExplain(() => loadConfig({ config: file ?? config }));
  const text =
    loaded.file === null
      ? 'No configuration file found. The defaults and the environment are valid.'
      : `${loaded.file} is valid.`;
  report({ file: loaded.file, valid: true }, text, json);
}

/** Reports configuration problems as sentences without a stack: the operator fixes them. */
export function orExplain<Value>(load: () => Value): Value {
  try {
    return load();
  } catch (error) {
    if (error instanceof ConfigError) throw new CliError(error.message);
    throw error;
  }
}
