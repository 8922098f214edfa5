// The options that describe a deployment, shared by `millrace deploy` and `millrace deployments update`.

import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { type Command, Option } from 'commander';
import { toNumber, toWholeNumber } from '#cli/number-option.ts';
import { CliError } from '#cli/output.ts';
import {
  type DeploymentChange,
  type DeploymentView,
  deploymentEngines,
} from '#deployments/ground/schema.ts';
import { toReason } from '#lib/start-error.ts';
import { parseTimeWindow, type TimeWindow } from '#lib/text/schedule-text.ts';

export interface DeploymentOptions {
  engine?: DeploymentView['engine'];
  /** False to return to the default, with `--no-source`. */
  source?: string | false;
  program?: string | false;
  arg?: string[];
  envFile?: string;
  on?: string;
  image?: string;
  setupFile?: string;
  min?: number;
  max?: number;
  target?: number;
  /** Seconds, or false for `never`. */
  sleepAfter?: number | false;
  stopAfter?: number | false;
  removeAfter?: number | false;
  startTimeout?: number;
  holdRequests?: number;
  holdSeconds?: number;
  weight?: number;
  checkMemory?: boolean;
  schedule?: string[] | false;
}

export function withDeploymentOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--engine <kind>', 'The engine; command is any program').choices(
        deploymentEngines,
      ),
    )
    .option(
      '--source <weights>',
      'GGUF file, folder, or repository of the hub (default: that of the model)',
    )
    .option(
      '--program <path>',
      "The engine's program (default: its name, from the system's folders)",
    )
    .option('--arg <argument...>', 'Arguments for the engine, after those that Millrace adds')
    .option('--env-file <file>', 'Environment of the engine, as NAME=value lines; it is encrypted')
    .option(
      '--on <type>',
      'Instance type: each replica is a machine of it (default: host, a process beside the server)',
    )
    .option('--image <family>', "Image for the machines (default: the host's)")
    .option('--setup-file <file>', 'Shell script that prepares a machine before the engine starts')
    .option('--min <number>', 'Replicas that always run (default: 0)', toWholeNumber)
    .option('--max <number>', 'Maximum number of replicas (default: 1)', toWholeNumber)
    .option(
      '--schedule <time...>',
      'Time with more replicas: days, from-to, number, time zone, as in "mon-fri 08:00-18:00 2 Europe/Berlin"',
    )
    .option(
      '--target <number>',
      'Running requests per replica to aim for (default: 8)',
      toWholeNumber,
    )
    .option(
      '--sleep-after <seconds>',
      'Idle time before an engine gives its memory back and sleeps, or never (default: never)',
      toSeconds,
    )
    .option(
      '--stop-after <seconds>',
      'Idle time before an engine ends, while its machine stays, or never (default: never)',
      toSeconds,
    )
    .option(
      '--remove-after <seconds>',
      'Idle time before a replica is removed, with its machine, or never (default: 600)',
      toSeconds,
    )
    .option(
      '--start-timeout <seconds>',
      'Time that a replica may take to answer first (default: 900)',
      toWholeNumber,
    )
    .option(
      '--hold-requests <number>',
      'Requests that may wait for the first replica (default: 100)',
      toWholeNumber,
    )
    .option('--hold-seconds <seconds>', 'How long each may wait (default: 600)', toWholeNumber)
    .option('--weight <number>', 'Share of the load beside other backends (default: 1)', toNumber)
    .option('--check-memory', 'Refuse a model that needs more memory than there is (default)')
    .option('--no-check-memory', 'Start it even if it seems not to fit');
}

/** Options that are not given are not sent. */
export function toChange(options: DeploymentOptions): DeploymentChange {
  const change = {
    engine: options.engine,
    source: options.source === false ? null : options.source,
    program: options.program === false ? null : options.program,
    args: options.arg,
    env: options.envFile === undefined ? undefined : parseEnv(readText(options.envFile)),
    runs_on: options.on,
    image: options.image,
    setup: options.setupFile === undefined ? undefined : readText(options.setupFile),
    min: options.min,
    max: options.max,
    target: options.target,
    ladder: toLadder(options),
    start_seconds: options.startTimeout,
    hold_requests: options.holdRequests,
    hold_seconds: options.holdSeconds,
    weight: options.weight,
    check_memory: options.checkMemory,
    schedule: options.schedule === false ? null : options.schedule?.map(toWindow),
  };
  return Object.fromEntries(
    Object.entries(change).filter(([, value]) => value !== undefined),
  ) as DeploymentChange;
}

const toSeconds = (text: string) => text !== 'never' && toWholeNumber(text);

/** Undefined if no step is given. Steps that are not given stay, and null leaves one out. */
function toLadder({ sleepAfter, stopAfter, removeAfter }: DeploymentOptions) {
  const steps = Object.entries({ asleep: sleepAfter, stopped: stopAfter, gone: removeAfter });
  const given = steps.filter(([, seconds]) => seconds !== undefined);
  if (given.length === 0) return undefined;
  return Object.fromEntries(
    given.map(([step, seconds]) => [step, seconds === false ? null : seconds]),
  );
}

function toWindow(text: string): TimeWindow {
  const window = parseTimeWindow(text);
  if (window === undefined)
    throw new CliError(
      `"${text}" is no time of a schedule. Write it as "mon-fri 08:00-18:00 2 Europe/Berlin".`,
    );
  return window;
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new CliError(`Can't read ${file}: ${toReason(error)}.`);
  }
}
