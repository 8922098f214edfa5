// Wire types of deployments. Times are ISO 8601.

import { Maybe, OneOf, type Static, Type } from '#lib/schema/schema-builder.ts';
import { weekdays } from '#lib/text/schedule-text.ts';

const closed = { additionalProperties: false } as const;
const Nullable = Type.Union([Type.String(), Type.Null()]);
/** The kinds of engines. */
export const deploymentEngines = ['builtin', 'llama-server', 'vllm', 'sglang', 'command'] as const;
const noNul = '^[^\\u0000]*$';
const Argument = Type.String({ maxLength: 4_096, pattern: noNul });

const Time = Type.String({ pattern: '^([01]\\d|2[0-3]):[0-5]\\d$' });

const TimeWindow = Type.Object(
  {
    days: Type.Array(OneOf(weekdays), { minItems: 1, maxItems: 7, uniqueItems: true }),
    /** Local time, as `08:00`. */
    from: Time,
    /** If it is not after `from`, it is on the next day. */
    to: Time,
    /** IANA's name, such as `Europe/Berlin`. */
    time_zone: Type.String({ minLength: 1, maxLength: 64, pattern: noNul }),
    min: Type.Integer({ minimum: 1, maximum: 64 }),
  },
  closed,
);

const Seconds = Type.Integer({ minimum: 1, maximum: 604_800 });
const MaybeSeconds = Type.Union([Seconds, Type.Null()]);

const Ladder = Type.Object(
  {
    /** The engine gives its memory back, and its process stays. */
    asleep: Maybe(Seconds),
    /** The engine ends, and its machine stays. */
    stopped: Maybe(Seconds),
    /** Nothing is left. */
    gone: Maybe(Seconds),
  },
  closed,
);

/** What both the API and the configuration file set. */
export const deploymentSettings = {
  /** An id of the catalog. Several deployments may serve one id. */
  model: Type.String({ minLength: 1, maxLength: 100, pattern: noNul }),
  engine: OneOf(deploymentEngines),
  /** The weights: a file or folder on the server's computer, or a repository of the hub, which the server fetches. */
  source: Maybe(Type.String({ minLength: 1, maxLength: 1_000, pattern: noNul })),
  /** The engine's program. Default: the engine's name, from the system's folders. */
  program: Maybe(Type.String({ minLength: 1, maxLength: 1_000, pattern: noNul })),
  args: Maybe(Type.Array(Argument, { maxItems: 200 })),
  /** `host`: processes beside the server. Otherwise an instance type: each replica is a machine of it. */
  runs_on: Maybe(Type.String({ minLength: 1, maxLength: 128, pattern: noNul })),
  /** Family of the image for the machines. Default: that of the host. */
  image: Maybe(Type.String({ minLength: 1, maxLength: 64, pattern: noNul })),
  /** A shell script that prepares a machine before the engine starts, with the engine's environment. */
  setup: Maybe(Type.String({ minLength: 1, maxLength: 65_536, pattern: noNul })),
  /** Environment of the engine. Encrypted in the database and never shown again. */
  env: Maybe(
    Type.Unsafe<Record<string, string>>({
      type: 'object',
      propertyNames: { pattern: '^[A-Za-z_][A-Za-z0-9_]{0,99}$' },
      additionalProperties: { type: 'string', maxLength: 8_192, pattern: noNul },
      maxProperties: 100,
    }),
  ),
  min: Maybe(Type.Integer({ minimum: 0, maximum: 64 })),
  max: Maybe(Type.Integer({ minimum: 1, maximum: 64 })),
  /** Times with a higher minimum. */
  schedule: Maybe(Type.Array(TimeWindow, { maxItems: 50 })),
  /** Running requests per replica to aim for. */
  target: Maybe(Type.Integer({ minimum: 1, maximum: 10_000 })),
  /** Seconds with too many replicas before one takes each step down. Null leaves a step out. */
  ladder: Maybe(Ladder),
  /** Seconds that a replica may take to answer for the first time. */
  start_seconds: Maybe(Type.Integer({ minimum: 1, maximum: 86_400 })),
  /** How many requests may wait for the first replica, and for how many seconds. */
  hold_requests: Maybe(Type.Integer({ minimum: 1, maximum: 100_000 })),
  hold_seconds: Maybe(Type.Integer({ minimum: 1, maximum: 86_400 })),
  /** False to start the engine even if the model seems to need more memory than there is. */
  check_memory: Maybe(Type.Boolean()),
  /** Share of the requests, relative to the other backends of the model. */
  weight: Maybe(Type.Number({ exclusiveMinimum: 0, maximum: 1_000 })),
};

export const NewDeployment = Type.Object(
  {
    name: Type.String({ pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$' }),
    ...deploymentSettings,
  },
  closed,
);

const { model: _, engine, ...changeable } = deploymentSettings;

/**
 * What is not given stays as it is, and null returns to the default. The model stays: another one is another deployment.
 */
export const DeploymentChange = Type.Object({ ...changeable, engine: Maybe(engine) }, closed);

export const ReplicaView = Type.Object({
  id: Type.String(),
  revision: Type.Integer(),
  /** `asleep` and `stopped` are steps of the ladder. */
  state: OneOf(['starting', 'ready', 'draining', 'asleep', 'stopped', 'stopping']),
  /** The instance that it runs on; null if it is a process beside the server. */
  instance_id: Nullable,
  /** What a starting replica does now. */
  progress: Nullable,
  requests: Type.Integer(),
  started_at: Type.String(),
  ready_at: Nullable,
});

export const DeploymentView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  model: Type.String(),
  engine: OneOf(deploymentEngines),
  source: Nullable,
  program: Nullable,
  /** Arguments may hold secrets: null for callers who may not change deployments. */
  args: Type.Union([Type.Array(Type.String()), Type.Null()]),
  runs_on: Type.String(),
  image: Nullable,
  /** Null also for callers who may not change deployments. */
  setup: Nullable,
  /** Names of the variables. Their values are not shown. */
  env: Type.Array(Type.String()),
  min: Type.Integer(),
  max: Type.Integer(),
  schedule: Type.Array(TimeWindow),
  /** The minimum now, by the schedule. */
  current_min: Type.Integer(),
  target: Type.Integer(),
  ladder: Type.Object({ asleep: MaybeSeconds, stopped: MaybeSeconds, gone: MaybeSeconds }),
  start_seconds: Type.Integer(),
  hold_requests: Type.Integer(),
  hold_seconds: Type.Integer(),
  weight: Type.Number(),
  check_memory: Type.Boolean(),
  revision: Type.Integer(),
  /**
   * `asleep`: the next request wakes a replica. `idle`: there is none, and the next request starts one. `stopping`: it was
   * stopped, and its last requests finish.
   */
  status: OneOf(['ready', 'starting', 'asleep', 'idle', 'stopping', 'stopped', 'failed']),
  /** Why it failed, as a sentence. */
  reason: Nullable,
  running: Type.Integer(),
  waiting: Type.Integer(),
  replicas: Type.Array(ReplicaView),
  can_roll_back: Type.Boolean(),
  /** True if it comes from the configuration file, and is changed only there. */
  in_file: Type.Boolean(),
  created_at: Type.String(),
});

const digits = '^[1-9]\\d{0,8}$';

export const FitsQuery = Type.Object(
  {
    /** An id of the catalog, a repository of the hub, or the path of a GGUF file or a folder on the server. */
    model: Type.String({ minLength: 1, maxLength: 1_000, pattern: noNul }),
    engine: Type.Optional(OneOf(deploymentEngines)),
    source: Type.Optional(Type.String({ minLength: 1, maxLength: 1_000, pattern: noNul })),
    target: Type.Optional(Type.String({ pattern: digits })),
    /** Tokens of each request. */
    context: Type.Optional(Type.String({ pattern: digits })),
  },
  closed,
);

export const FitsView = Type.Object({
  model: Type.String(),
  source: Nullable,
  /** Null if the model is not in the list of known models. */
  parameters_billions: Type.Union([Type.Number(), Type.Null()]),
  licence: Nullable,
  /** Null if it can't be computed: the model is neither here nor known. */
  need: Type.Union([
    Type.Object({
      total_gib: Type.Number(),
      weights_gib: Type.Number(),
      cache_gib: Type.Number(),
      overhead_gib: Type.Number(),
      /** The cache is for this many requests with as many tokens each. */
      requests: Type.Integer(),
      tokens: Type.Integer(),
    }),
    Type.Null(),
  ]),
  places: Type.Array(
    Type.Object({
      /** `host` or the name of an instance type. */
      name: Type.String(),
      usable_gib: Type.Number(),
      fits: Type.Boolean(),
      summary: Type.String(),
    }),
  ),
});

export const KnownModelView = Type.Object({
  source: Type.String(),
  parameters_billions: Type.Number(),
  context_window: Type.Integer(),
  licence: Type.String(),
});

/** What a deployment served and cost in the last 30 days, or since it was created. */
export const CostView = Type.Object({
  since: Type.String(),
  /** Prompts and completions together. */
  tokens: Type.Integer(),
  /** Sum over all replicas. */
  engine_seconds: Type.Integer(),
  /** Price of the machines for the time that replicas ran on them; 0 on the server's own computer. */
  machine_dollars: Type.Number(),
  /** Null if no machine has a price, or no token was served. */
  dollars_per_million_tokens: Type.Union([Type.Number(), Type.Null()]),
  /** Hours without any replica. */
  idle_hours: Type.Number(),
  /** What one machine would have cost in these hours; 0 on the server's own computer. */
  saved_dollars: Type.Number(),
  /** Generated tokens, over the last five minutes. */
  tokens_per_second: Type.Number(),
  /** Average over streams whose first token came in the last five minutes; null if there was none. */
  first_token_ms: Type.Union([Type.Integer(), Type.Null()]),
});

export type CostView = Static<typeof CostView>;
export type FitsView = Static<typeof FitsView>;
export type KnownModelView = Static<typeof KnownModelView>;
export type NewDeployment = Static<typeof NewDeployment>;
export type DeploymentChange = Static<typeof DeploymentChange>;
export type ReplicaView = Static<typeof ReplicaView>;
export type DeploymentView = Static<typeof DeploymentView>;

export const DeploymentParams = Type.Object({
  name: Type.String({ maxLength: 64, pattern: '^[^\\u0000]+$' }),
});

export const DeploymentLog = Type.Object({ lines: Type.Array(Type.String()) });
export type DeploymentLog = Static<typeof DeploymentLog>;
