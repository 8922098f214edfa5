// How engines sleep: what they must be started with, and the requests that put them to sleep and wake them. Data.

import type { Ladder } from './ladder.ts';
import type { NewDeployment } from './schema.ts';

export interface Sleep {
  /** Arguments without which the engine can't sleep. */
  toArguments(asleepSeconds: number): readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** Path of the POST request that puts it to sleep; null if it falls asleep by itself. */
  readonly path: string | null;
  /** True if an engine that sleeps ends when it is put to sleep again. */
  readonly endsIfRepeated?: true;
  /** Path of the POST request that wakes it; null if any request does. */
  readonly wakePath: string | null;
}

/**
 * llama-server measures its idleness by itself, and may lose a request that comes while it falls asleep. So it does that
 * after it was drained.
 */
const llamaDelaySeconds = 5;

/** Null for engines that can't sleep. */
export const sleeps: Readonly<Record<NewDeployment['engine'], Sleep | null>> = {
  vllm: {
    toArguments: () => ['--enable-sleep-mode'],
    // Without it, vLLM has no such requests.
    environment: { VLLM_SERVER_DEV_MODE: '1' },
    path: '/sleep?level=1',
    wakePath: '/wake_up',
  },
  sglang: {
    // Without a copy in the computer's memory, the weights would be lost.
    toArguments: () => ['--enable-memory-saver', '--enable-weights-cpu-backup'],
    path: '/release_memory_occupation',
    // Its message is "Cannot pause allocation that is not active".
    endsIfRepeated: true,
    wakePath: '/resume_memory_occupation',
  },
  'llama-server': {
    toArguments: (seconds) => ['--sleep-idle-seconds', `${seconds + llamaDelaySeconds}`],
    path: null,
    wakePath: null,
  },
  builtin: { toArguments: () => [], path: '/sleep', wakePath: null },
  command: null,
};

/** Says why an engine can't sleep in a place; null if it can. */
export function findSleepObstacle(engine: NewDeployment['engine'], runsOn: string): string | null {
  if (sleeps[engine] === null) return `The engine "${engine}" can't sleep. Choose another one.`;
  if (engine === 'vllm' && runsOn === 'host')
    return 'The engine "vllm" sleeps only on machines: to sleep, it must take requests without a key from every program of its computer. Name an instance type in runs_on.';
  return null;
}

interface Sleeper {
  readonly engine: NewDeployment['engine'];
  readonly ladder: Ladder;
}

export const toSleepArguments = ({ engine, ladder }: Sleeper): readonly string[] =>
  ladder.asleep === null ? [] : (sleeps[engine]?.toArguments(ladder.asleep) ?? []);

export const toSleepEnvironment = ({
  engine,
  ladder,
}: Sleeper): Readonly<Record<string, string>> =>
  ladder.asleep === null ? {} : (sleeps[engine]?.environment ?? {});
