// Wire types of the endpoints for backends. Times are ISO 8601.

import { upstreamServers } from '#inference/engines/upstream/servers.ts';
import { closed, Maybe, noNul, OneOf, type Static, Type } from '#lib/schema/schema-builder.ts';

const Nullable = Type.Union([Type.String(), Type.Null()]);
const NullableNumber = Type.Union([Type.Number(), Type.Null()]);
const Milliseconds = Type.Integer({ minimum: 1, maximum: 86_400_000 });
const Weight = Type.Number({ exclusiveMinimum: 0, maximum: 1_000 });
const Concurrency = Type.Integer({ minimum: 1, maximum: 100_000 });

export const NewBackend = Type.Object(
  {
    /** An id of the catalog. */
    model: Type.String({ minLength: 1, maxLength: 100 }),
    name: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$' }),
    /** The base address, such as http://10.0.0.5:8000/v1. */
    url: Type.String({ pattern: '^https?://[^\\s?#@]+$', maxLength: 2_000 }),
    api_key: Maybe(Type.String({ pattern: '^[!-~]{1,4096}$' })),
    /** What the upstream calls the model; the id when not given. */
    upstream_model: Maybe(Type.String({ minLength: 1, maxLength: 500 })),
    headers: Maybe(
      Type.Unsafe<Record<string, string>>({
        type: 'object',
        propertyNames: { pattern: '^[A-Za-z0-9-]{1,100}$' },
        additionalProperties: { type: 'string', pattern: '^[ -~]{0,4096}$' },
        maxProperties: 32,
      }),
    ),
    weight: Maybe(Weight),
    concurrency: Maybe(Concurrency),
    server: Maybe(OneOf(upstreamServers)),
    timeouts: Maybe(
      Type.Object(
        {
          connect_ms: Maybe(Milliseconds),
          first_byte_ms: Maybe(Milliseconds),
          idle_ms: Maybe(Milliseconds),
        },
        closed,
      ),
    ),
    continue_streams: Maybe(Type.Boolean()),
  },
  closed,
);

export const BackendChange = Type.Object(
  {
    draining: Maybe(Type.Boolean()),
    weight: Maybe(Weight),
    /** Null takes the limit away; what is not given stays. */
    concurrency: Maybe(Concurrency),
  },
  closed,
);

const Name = Type.String({ maxLength: 256, pattern: noNul.notEmpty });

export const ModelParams = Type.Object({ model: Name });
export const BackendParams = Type.Object({ model: Name, name: Name });

export const BackendView = Type.Object({
  id: Type.String(),
  model: Type.String(),
  name: Type.String(),
  kind: OneOf(['upstream', 'weights', 'stand-in']),
  source: OneOf(['file', 'live', 'weights', 'builtin', 'deployment']),
  url: Nullable,
  upstream_model: Nullable,
  server: Type.Union([OneOf(upstreamServers), Type.Null()]),
  weight: Type.Number(),
  concurrency: Type.Union([Type.Integer(), Type.Null()]),
  draining: Type.Boolean(),
  health: OneOf(['healthy', 'ejected', 'probation']),
  /** What the last failure was, while it is not well. */
  reason: Nullable,
  retry_at: Nullable,
  checked_at: Nullable,
  outstanding: Type.Integer(),
  /** Requests that wait for any backend of the model. */
  queued: Type.Integer(),
  /** Over the last minute. */
  requests_per_second: Type.Number(),
  /** The median of the last hundred. */
  first_token_ms: NullableNumber,
  /** How many times slower it is than the fastest backend of the model; null if it is not several times slower. */
  slowness: NullableNumber,
  /** Requests in the last five minutes, and those that failed: also if every backend failed them. */
  requests: Type.Integer(),
  errors: Type.Integer(),
  /** True from a failed request until one succeeds, however long ago it was. */
  failing: Type.Boolean(),
  /** The last failure, if it was in the last five minutes or no request has succeeded since. */
  last_error: Nullable,
  /** Responses in the last 24 hours whose token counts could not be true and were counted here instead. */
  implausible_counts: Type.Integer(),
});

export const BackendCheck = Type.Object({
  ok: Type.Boolean(),
  message: Type.String(),
  models: Type.Array(Type.String()),
  latency_ms: Type.Integer(),
});

export type NewBackend = Static<typeof NewBackend>;
export type BackendChange = Static<typeof BackendChange>;
export type BackendView = Static<typeof BackendView>;
export type BackendCheck = Static<typeof BackendCheck>;
