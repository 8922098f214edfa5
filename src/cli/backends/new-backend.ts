// The options that describe a backend, shared by the commands that add one and that only try it.

import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError } from 'commander';
import { CliError } from '#cli/output.ts';
import type { NewBackend } from '#inference/backends/schema.ts';
import { toReason } from '#lib/start-error.ts';

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
    .argument('<model>', 'the id it answers for, from `millrace models list`')
    .argument('<url>', 'where its API begins, such as http://10.0.0.5:8000/v1')
    .option('--name <name>', 'what to call it; made from the address when not given')
    .option('--model <name>', 'what it calls the model; the id when not given')
    .option('--server <kind>', 'vllm, sglang, llama-server, ollama, or openai for any other')
    .option('--api-key-file <file>', 'a file with its key; - reads it from stdin')
    .option('--header <name: value...>', 'a header to send with every request')
    .option('--weight <number>', 'its share of the work, relative to others', toNumber)
    .option('--concurrency <number>', 'requests it takes at once', toNumber)
    .option('--connect-ms <ms>', 'how long connecting may take', toNumber)
    .option('--first-byte-ms <ms>', 'how long the beginning of an answer may take', toNumber)
    .option('--idle-ms <ms>', 'how long it may be silent in the middle of one', toNumber);
}

export function toNewBackend(model: string, url: string, options: BackendOptions): NewBackend {
  const { connectMs, firstByteMs, idleMs } = options;
  return {
    model,
    url,
    name: options.name ?? toName(url),
    api_key: options.apiKeyFile === undefined ? null : readKey(options.apiKeyFile),
    upstream_model: options.model ?? null,
    // The server says which kinds there are.
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

/** `10.0.0.5-8000`: different for different servers, and the same each time. */
function toName(url: string): string {
  if (!URL.canParse(url)) throw new CliError(`${url} is not a web address.`);
  const name = new URL(url).host.replaceAll(/[^A-Za-z0-9.-]+/g, '-');
  return name.replace(/^[^A-Za-z0-9]+/, '').slice(0, 64);
}

/** Never from a flag: a command line is there for every user of the machine to read. */
function readKey(file: string): string {
  try {
    return readFileSync(file === '-' ? 0 : file, 'utf8').trim();
  } catch (error) {
    throw new CliError(`${file} can't be read: ${toReason(error)}.`);
  }
}

function parseHeader(text: string): [string, string] {
  const [, name, value] = /^([A-Za-z0-9-]+):\s*(.*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) {
    throw new CliError(`A header is written "name: value", not ${JSON.stringify(text)}.`);
  }
  return [name, value];
}

function toNumber(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isFinite(value))
    throw new InvalidArgumentError('Not a number.');
  return value;
}
