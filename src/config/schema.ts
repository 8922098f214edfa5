// Every setting, with its default and its explanation. The file's JSON Schema, the example file, the
// validation and the Config type all come from here.

import { regions } from '#cloud/regions.ts';
import { Type } from '#lib/schema/schema-builder.ts';
import { OneOf, type Static } from '#lib/schema/validation-error.ts';
import { type HostSetting, HostSettings } from './host-setting.ts';
import { modelSettings } from './model-settings.ts';

const section = { additionalProperties: false } as const;

const webAddress = '^https?://[^\\s?#@]+$';

const NullableString = (description: string) =>
  Type.Unsafe<string | null>({
    type: ['string', 'null'],
    minLength: 1,
    default: null,
    description,
  });

const LimitDefaults = (description: string) => {
  const limit = (type: 'integer' | 'number', text: string) =>
    Type.Unsafe<number | null>({
      type: [type, 'null'],
      ...(type === 'integer' ? { minimum: 1 } : { exclusiveMinimum: 0 }),
      maximum: type === 'integer' ? 1_000_000_000 : 1_000_000,
      default: null,
      description: text,
    });
  return Type.Object(
    {
      requests_per_minute: limit('integer', 'Null for no limit, as all of these.'),
      tokens_per_minute: limit('integer', 'Of prompts and answers.'),
      concurrent_requests: limit('integer', 'Requests at the same time.'),
      monthly_budget: limit('number', 'US dollars in a calendar month (UTC).'),
    },
    { ...section, description },
  );
};

export const ConfigSchema = Type.Object(
  {
    data_dir: Type.String({
      default: './data',
      minLength: 1,
      description: 'Where state lives: the SQLite database, machines, pulled models.',
    }),
    secret_key: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      pattern: '^[A-Za-z0-9+/]{43}=$',
      default: null,
      description:
        'Seals the keys of backends in the database; the same for all servers on one. Kept in data_dir when null.',
    }),
    server: Type.Object(
      {
        host: Type.String({
          default: '127.0.0.1',
          minLength: 1,
          description: 'The address to listen on. 0.0.0.0 opens it to the network.',
        }),
        port: Type.Integer({ default: 8080, minimum: 0, maximum: 65535 }),
        public_url: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          pattern: webAddress,
          default: null,
          description:
            'The address people reach the server by, for links. Made from host and port when null.',
        }),
        trusted_proxies: Type.Integer({
          default: 0,
          minimum: 0,
          maximum: 10,
          description:
            'How many proxies stand in front and add to x-forwarded-for. With 0 it is not believed.',
        }),
        tls_certificate: NullableString('A PEM file. Set both this and tls_key to serve HTTPS.'),
        tls_key: NullableString('The PEM file with the private key of tls_certificate.'),
        drain_seconds: Type.Integer({
          default: 30,
          minimum: 0,
          maximum: 3600,
          description: 'How long running requests may finish after SIGTERM.',
        }),
      },
      { ...section, description: 'How the server listens.' },
    ),
    database: Type.Object(
      {
        url: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          pattern: '^postgres(ql)?://',
          default: null,
          description: 'postgres://user:password@host/name. SQLite in data_dir when null.',
        }),
        pool_size: Type.Integer({
          default: 10,
          minimum: 1,
          maximum: 1000,
          description: 'Connections to PostgreSQL at most.',
        }),
      },
      { ...section, description: 'Where state is kept.' },
    ),
    log: Type.Object(
      {
        level: Type.Unsafe<'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'>({
          ...OneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']),
          default: 'info',
          description:
            'One of fatal, error, warn, info, debug, trace, silent. JSON lines on stderr.',
        }),
      },
      { ...section, description: 'Logs never hold keys or prompts.' },
    ),
    accounts: Type.Object(
      {
        session_days: Type.Integer({
          default: 30,
          minimum: 1,
          maximum: 365,
          description: 'How long a sign-in lasts.',
        }),
        invitation_days: Type.Integer({
          default: 7,
          minimum: 1,
          maximum: 90,
          description: 'How long an invitation link works.',
        }),
        login_attempts: Type.Integer({
          default: 10,
          minimum: 1,
          maximum: 10_000,
          description:
            'Failed sign-ins per e-mail address in 15 minutes; five times that per network address.',
        }),
      },
      { ...section, description: 'People and how they sign in.' },
    ),
    inference: Type.Object(
      {
        max_body_mib: Type.Integer({
          default: 8,
          minimum: 1,
          maximum: 1024,
          description: 'The largest request body, in MiB.',
        }),
        queue: Type.Object(
          {
            length: Type.Integer({
              default: 256,
              minimum: 0,
              maximum: 100_000,
              description: 'Requests that may wait for one model.',
            }),
            wait_seconds: Type.Number({
              default: 60,
              exclusiveMinimum: 0,
              maximum: 86_400,
              description: 'How long one of them waits before it is turned away.',
            }),
          },
          {
            ...section,
            description:
              'Where requests wait while every backend of a model has as many as it takes.',
          },
        ),
        stand_in: NullableString(
          'A GGUF file that answers for models without a backend. The built-in model when null.',
        ),
        preload: Type.Boolean({
          default: false,
          description: 'Load the stand-in at start instead of at the first request.',
        }),
        gpu: Type.Boolean({
          default: true,
          description: 'Use a GPU for models on this machine when there is one.',
        }),
        idle_minutes: Type.Number({
          default: 10,
          exclusiveMinimum: 0,
          maximum: 100_000,
          description: 'A model on this machine is let go after so long without a request.',
        }),
        memory_limit_gib: Type.Unsafe<number | null>({
          type: ['number', 'null'],
          exclusiveMinimum: 0,
          default: null,
          description:
            'What all models on this machine may take together. Three quarters of its memory when null.',
        }),
        threads: Type.Unsafe<number | null>({
          type: ['integer', 'null'],
          minimum: 1,
          maximum: 256,
          default: null,
          description:
            'Threads per model on this machine. Chosen by the number of cores when null.',
        }),
      },
      { ...section, description: 'The API at /v1.' },
    ),
    limits: Type.Object(
      {
        key: LimitDefaults('What a new API key gets unless it was made with others.'),
        account: LimitDefaults('What a new account gets.'),
      },
      {
        ...section,
        description:
          'Limits of the inference API for what is made from now on. What exists is changed in the dashboard or by `millrace keys limit` and `millrace limits set`.',
      },
    ),
    redis: Type.Object(
      {
        url: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          pattern: '^rediss?://',
          default: null,
          description:
            'redis://host:6379 of a Valkey or Redis. Only several servers need it, to share limits.',
        }),
      },
      { ...section, description: 'What several servers on one database share beside it.' },
    ),
    usage: Type.Object(
      {
        request_days: Type.Integer({
          default: 90,
          minimum: 1,
          maximum: 3650,
          description: 'How long the row of each request is kept.',
        }),
        hour_days: Type.Integer({
          default: 800,
          minimum: 1,
          maximum: 36_500,
          description: 'How long the sums of each hour are kept.',
        }),
      },
      { ...section, description: 'What is kept about requests: counts and costs, never prompts.' },
    ),
    models: Type.Object(
      {
        hub_url: Type.String({
          default: 'https://huggingface.co',
          pattern: webAddress,
          description:
            'The hub that weights are pulled from: Hugging Face or one that speaks like it.',
        }),
        hub_token: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          pattern: '^[!-~]+$',
          default: null,
          description: 'For private and gated repositories. Sent to the hub only.',
        }),
        pull_concurrency: Type.Integer({
          default: 2,
          minimum: 1,
          maximum: 16,
          description: 'Pulls that run at once; others wait their turn.',
        }),
        disk_reserve_gib: Type.Number({
          default: 5,
          minimum: 0,
          maximum: 1_000_000,
          description: 'Disk space that a pull must leave free, in GiB.',
        }),
        ...modelSettings,
      },
      { ...section, description: 'Models, what serves them, and weights pulled to this machine.' },
    ),
    cloud: Type.Object(
      {
        rate_limit: Type.Boolean({
          default: true,
          description:
            'Limit each account to requests_per_second and one launch per launch_interval_seconds.',
        }),
        requests_per_second: Type.Number({ default: 1, exclusiveMinimum: 0, maximum: 100_000 }),
        launch_interval_seconds: Type.Number({ default: 10, minimum: 0, maximum: 86_400 }),
        ssh_keys_per_account: Type.Integer({ default: 1024, minimum: 1, maximum: 1_000_000 }),
        instances_per_account: Type.Integer({ default: 100, minimum: 0, maximum: 60_000 }),
        filesystems_per_account: Type.Integer({ default: 24, minimum: 0, maximum: 10_000 }),
        firewall_rulesets_per_account: Type.Integer({ default: 100, minimum: 0, maximum: 10_000 }),
        driver: Type.Unsafe<'sandbox' | 'scripted' | 'none'>({
          ...OneOf(['sandbox', 'scripted', 'none']),
          default: 'sandbox',
          description:
            'What makes machines on this host: sandbox. none leaves them to other hosts; scripted makes none and only remembers them.',
        }),
        host_name: NullableString('What this host is called. Its own host name when null.'),
        hosts: Type.Unsafe<readonly HostSetting[]>({
          ...HostSettings,
          default: [],
          description:
            'LXD and Incus hosts that are always there; others are added by `millrace hosts add`. See docs/scaling-out.md.',
        }),
        host_grace_seconds: Type.Integer({
          default: 15,
          minimum: 1,
          maximum: 3600,
          description: 'How long a host may be silent before its machines are unhealthy.',
        }),
        client_certificate: NullableString(
          'The PEM file by which hosts know this server, the same for all servers of one database. Made in data_dir when null.',
        ),
        client_key: NullableString('The PEM file with the private key of client_certificate.'),
        isolation: Type.Unsafe<'auto' | 'none'>({
          ...OneOf(['auto', 'none']),
          default: 'auto',
          description:
            'auto isolates sandboxes by Linux namespaces and refuses to launch where it can not. none runs them as plain processes, for people who trust each other.',
        }),
        region: Type.Unsafe<string>({
          ...OneOf(regions.map(({ name }) => name)),
          default: 'us-west-1',
          description:
            'Where this host says it is: one of the codes clients know, such as us-west-1 or europe-central-1.',
        }),
        emulate: Type.Boolean({
          default: false,
          description: 'Give every type of the public catalog capacity, without its hardware.',
        }),
        emulated_instances: Type.Integer({
          default: 16,
          minimum: 1,
          maximum: 10_000,
          description: 'How many emulated instances may run at once.',
        }),
        prices: Type.Unsafe<Record<string, number>>({
          type: 'object',
          additionalProperties: { type: 'integer', minimum: 0, maximum: 10_000_000 },
          default: {},
          description: 'Cents an hour by instance type, e.g. {"cpu_1x_general": 5}.',
        }),
      },
      { ...section, description: 'The API at /api/v1.' },
    ),
    telemetry: Type.Object(
      {
        otlp_url: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          pattern: webAddress,
          default: null,
          description:
            'A collector that takes OTLP over HTTP, e.g. http://127.0.0.1:4318. No traces when null.',
        }),
        otlp_headers: Type.Unsafe<Record<string, string>>({
          type: 'object',
          additionalProperties: { type: 'string' },
          default: {},
          description: 'Sent to the collector, for one that wants a key.',
        }),
        sample_ratio: Type.Number({
          default: 1,
          minimum: 0,
          maximum: 1,
          description: 'The part of requests that is traced when the caller has not decided.',
        }),
      },
      { ...section, description: 'Traces of requests at /v1. They never hold prompts or answers.' },
    ),
  },
  { ...section, title: 'Millrace configuration' },
);

export type Config = Static<typeof ConfigSchema>;

/** Environment variables and flags that set one setting. They win over the file; flags win over both. */
export const overrides = [
  { path: 'data_dir', env: 'MILLRACE_DATA_DIR', flag: '--data-dir <path>' },
  { path: 'server.host', env: 'MILLRACE_HOST', flag: '--host <address>' },
  { path: 'server.port', env: 'MILLRACE_PORT', flag: '--port <number>' },
  { path: 'server.public_url', env: 'MILLRACE_PUBLIC_URL', flag: '--public-url <url>' },
  { path: 'database.url', env: 'DATABASE_URL', flag: '--database-url <url>' },
  { path: 'models.hub_url', env: 'MILLRACE_HUB_URL', flag: '--hub-url <url>' },
  // No flag: a command line is there for every user of the machine to read.
  { path: 'models.hub_token', env: 'HF_TOKEN', flag: null },
  { path: 'telemetry.otlp_url', env: 'OTEL_EXPORTER_OTLP_ENDPOINT', flag: null },
  { path: 'secret_key', env: 'MILLRACE_SECRET_KEY', flag: null },
  { path: 'redis.url', env: 'REDIS_URL', flag: null },
  { path: 'log.level', env: 'MILLRACE_LOG_LEVEL', flag: '--log-level <level>' },
] as const;

/** For editors: what a file may hold. Everything has a default, so nothing is required. */
export function toFileSchema(schema: unknown = ConfigSchema): unknown {
  if (Array.isArray(schema)) return schema;
  if (typeof schema !== 'object' || schema === null) return schema;
  const members = Object.entries(schema).filter(([name]) => name !== 'required');
  return Object.fromEntries(members.map(([name, member]) => [name, toFileSchema(member)]));
}
