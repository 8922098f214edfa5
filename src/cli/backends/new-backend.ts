// The options that describe a backend, shared by `backends add` and `backends check`.

import type { Command } from 'commander';
import { toNumber } from '#cli/number-option.ts';
import { CliError } from '#cli/output.ts';
import { readSecret } from '#cli/secret-file.ts';
import type { NewBackend } from '#inference/backends/schema.ts';

export interface BackendOptions {
  name?: string;
  apiKeyFile?: string;
  model?: string;
  server?: string;
  header?: string[];
  weight?: number;
  concurrency?: number;
  connectMs?: number;
  firstByteMs?: number;
  idleMs?: number;
}

export function withBackendOptions(command: Command): Command {
  return command
    .argument('<model>', 'Model id to answer for, from `millrace models list`')
    .argument('<url>', 'Base URL of its API, e.g. http://10.0.0.5:8000/v1')
    .option('--name <name>', 'Name for the backend (default: from the URL)')
    .option('--model <name>', 'Name of the model on the backend (default: the model id)')
    .option(
      '--server <kind>',
      'vllm, sglang, llama-server, ollama, or openai for any other (default: openai)',
    )
    .option('--api-key-file <file>', 'File with its API key; - reads standard input')
    .option('--header <name: value...>', 'Header to send with every request')
    .option(
      '--weight <number>',
      'Share of the load relative to other backends (default: 1)',
      toNumber,
    )
    .option('--concurrency <number>', 'Maximum concurrent requests (default: no limit)', toNumber)
    .option(
      '--connect-ms <ms>',
      'Timeout for connecting, in milliseconds (default: 2000)',
      toNumber,
    )
    .option(
      '--first-byte-ms <ms>',
      'Timeout for the first byte of a response, in milliseconds (default: 120000)',
      toNumber,
    )
    .option(
      '--idle-ms <ms>',
      'Timeout between two chunks of a response, in milliseconds (default: 60000)',
      toNumber,
    );
}

export function toNewBackend(model: string, url: string, options: BackendOptions): NewBackend {
  const { connectMs, firstByteMs, idleMs } = options;
  return {
    model,
    url,
    name: options.name ?? toName(url),
    api_key: options.apiKeyFile === undefined ? null : readSecret(options.apiKeyFile),
    upstream_model: options.model ?? null,
    // The server validates the kind.
    server: (options.server ?? null) as NewBackend['server'] & (string | null),
    headers: Object.fromEntries((options.header ?? []).map(parseHeader)),
    weight: options.weight ?? null,
    concurrency: options.concurrency ?? null,
    timeouts: {
      connect_ms: connectMs ?? null,
      first_byte_ms: firstByteMs ?? null,
      idle_ms: idleMs ?? null,
    },
  };
}

/** `10.0.0.5-8000`: unique per server, and the same on every call. */
function toName(url: string): string {
  if (!URL.canParse(url))
    throw new CliError(`${url} is not a URL. Give one such as http://10.0.0.5:8000/v1.`);
  const name = new URL(url).host.replaceAll(/[^A-Za-z0-9.-]+/g, '-');
  return name.replace(/^[^A-Za-z0-9]+/, '').slice(0, 64);
}

function parseHeader(text: string): [string, string] {
  const [, name, value] = /^([A-Za-z0-9-]+):\s*(.*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) {
    throw new CliError(`--header must be "name: value", got ${JSON.stringify(text)}.`);
  }
  return [name, value];
}
