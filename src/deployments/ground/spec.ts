// The settings of a deployment with all defaults, and the checks that a schema can't express.

import { invalidBody } from '#lib/errors.ts';
import { type Ladder, steps } from './ladder.ts';
import type { DeploymentChange, NewDeployment } from './schema.ts';
import { findSleepObstacle, toSleepArguments } from './sleep.ts';

type Settings = Omit<NewDeployment, 'name'>;

/** Named as on the wire, which is also how they are stored. */
export type DeploymentSpec = {
  readonly [Name in keyof Settings]-?: Name extends 'source' | 'program' | 'image' | 'setup'
    ? string | null
    : Name extends 'ladder'
      ? Ladder
      : NonNullable<Settings[Name]>;
};

const defaults = {
  source: null,
  program: null,
  args: [],
  runs_on: 'host',
  image: null,
  setup: null,
  env: {},
  min: 0,
  max: 1,
  schedule: [],
  target: 8,
  ladder: { asleep: null, stopped: null, gone: 600 },
  start_seconds: 900,
  hold_requests: 100,
  hold_seconds: 600,
  weight: 1,
  check_memory: true,
} satisfies Partial<DeploymentSpec>;

/** Throws a Refusal if the settings contradict each other. */
export function toSpec({ name: _, ...given }: NewDeployment): DeploymentSpec {
  return checkSpec({
    ...defaults,
    model: given.model,
    engine: given.engine,
    ...withoutNulls(given),
    ladder: { ...defaults.ladder, ...given.ladder },
  });
}

/** Null returns a setting to its default. The engine has none, and stays. So do steps of the ladder that are not given. */
export const changeSpec = (spec: DeploymentSpec, change: DeploymentChange): DeploymentSpec =>
  checkSpec({
    ...spec,
    ...toDefaults(change),
    ...withoutNulls(change),
    ladder: change.ladder === null ? defaults.ladder : { ...spec.ladder, ...change.ladder },
  });

/** Settings as they were stored, perhaps by an earlier version, which had one idle time instead of the ladder. */
export function completeSpec({ idle_seconds: gone, ...stored }: StoredSpec): DeploymentSpec {
  const idle = gone === undefined ? {} : { gone };
  const spec = {
    ...defaults,
    ...stored,
    ladder: { ...defaults.ladder, ...idle, ...stored.ladder },
  };
  // An earlier version let vLLM sleep on the host.
  const canSleep = findSleepObstacle(spec.engine, spec.runs_on) === null;
  return canSleep ? spec : { ...spec, ladder: { ...spec.ladder, asleep: null } };
}

type StoredSpec = Omit<DeploymentSpec, 'ladder'> & {
  readonly ladder?: Ladder;
  readonly idle_seconds?: number;
};

export const parseSpec = (text: string): DeploymentSpec => completeSpec(JSON.parse(text));

/** True if replicas of one may go on as replicas of the other. */
export const isSameEngine = (one: DeploymentSpec, other: DeploymentSpec): boolean =>
  JSON.stringify(toEngine(one)) === JSON.stringify(toEngine(other));

const toEngine = ({ env, ...spec }: DeploymentSpec) => [
  spec.engine,
  spec.source,
  spec.program,
  spec.args,
  spec.runs_on,
  spec.image,
  spec.setup,
  spec.ladder.asleep !== null,
  toSleepArguments(spec),
  Object.entries(env).sort(),
];

const toDefaults = (change: DeploymentChange) =>
  Object.fromEntries(
    Object.entries(defaults).filter(([name]) => change[name as keyof typeof defaults] === null),
  );

/** Null means "not set". */
const withoutNulls = (given: object) =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value != null));

function checkSpec(spec: DeploymentSpec): DeploymentSpec {
  const { engine, source, program, min, max, schedule } = spec;
  for (const name of ['image', 'setup'] as const)
    if (spec.runs_on === 'host' && spec[name] !== null)
      throw invalidBody(`${name} is for machines. Name an instance type in runs_on.`, name);
  checkLadder(spec);
  if (min > max) throw invalidBody(`min is ${min}, which is more than max, ${max}.`, 'min');
  for (const window of schedule) {
    if (window.min > max)
      throw invalidBody(
        `A time of the schedule has min ${window.min}, which is more than max, ${max}.`,
        'schedule',
      );
    if (!isTimeZone(window.time_zone))
      throw invalidBody(
        `There is no time zone ${JSON.stringify(window.time_zone)}. Use a name such as Europe/Berlin.`,
        'schedule',
      );
  }
  if (engine === 'command' && program === null)
    throw invalidBody('The engine "command" needs a program.', 'program');
  if (engine === 'llama-server' && source === null)
    throw invalidBody(
      'The engine "llama-server" needs a source: a GGUF file, or a repository of the hub that has one.',
      'source',
    );
  return spec;
}

function checkLadder({ ladder, engine, runs_on }: DeploymentSpec): void {
  const obstacle = findSleepObstacle(engine, runs_on);
  if (ladder.asleep !== null && obstacle !== null)
    throw invalidBody(
      `${obstacle} Otherwise set ladder.asleep to null (--sleep-after never).`,
      'ladder',
    );
  if (ladder.stopped !== null && runs_on === 'host')
    throw invalidBody(
      'ladder.stopped is for machines. Name an instance type in runs_on, or set it to null (--stop-after never).',
      'ladder',
    );
  const given = steps.filter((step) => ladder[step] !== null);
  for (const [at, step] of given.entries()) {
    const before = given[at - 1];
    if (before !== undefined && Number(ladder[step]) <= Number(ladder[before]))
      throw invalidBody(
        `ladder.${step} is ${ladder[step]}, which is not more than ladder.${before}, ${ladder[before]}.`,
        'ladder',
      );
  }
}

function isTimeZone(timeZone: string): boolean {
  try {
    return Intl.DateTimeFormat('en', { timeZone }) !== undefined;
  } catch {
    return false;
  }
}

/** How many requests wait for a replica, and for how long. */
export const toHoldLimits = ({ hold_requests, hold_seconds }: DeploymentSpec) => ({
  maxLength: hold_requests,
  maxWaitMs: hold_seconds * 1_000,
});
