// The inference API at /v1 and the models that run on this computer: the section inference.

import { NullableString, section } from '#config/field.ts';
import { Type } from '#lib/schema/schema-builder.ts';

const QueueSettings = Type.Object(
  {
    length: Type.Integer({
      default: 256,
      minimum: 0,
      maximum: 100_000,
      description: 'Maximum number of requests that wait for one model.',
    }),
    wait_seconds: Type.Number({
      default: 60,
      exclusiveMinimum: 0,
      maximum: 86_400,
      description: 'Seconds that a request may wait before it is refused.',
    }),
  },
  {
    ...section,
    description:
      'The queue of a model, used while all its backends are at their concurrency limit.',
  },
);

export const InferenceSettings = Type.Object(
  {
    max_body_mib: Type.Integer({
      default: 8,
      minimum: 1,
      maximum: 1024,
      description: 'Maximum size of a request body, in MiB.',
    }),
    max_body_values: Type.Integer({
      default: 200_000,
      minimum: 1_000,
      maximum: 100_000_000,
      description:
        'Maximum number of JSON values in a request body, counted as commas and opening brackets.',
    }),
    large_bodies_mib: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      minimum: 2,
      maximum: 1_048_576,
      default: null,
      description:
        'Maximum total size, in MiB, of the request bodies over 256 KiB that the server holds at once. Further ones wait to be read. One caller may use half of it. If null, 32 times max_body_mib.',
    }),
    allowed_origins: Type.Array(Type.String({ pattern: '^(\\*|https?://[^\\s/?#@]+)$' }), {
      default: [],
      description:
        'Origins whose pages may call /v1 from a browser (CORS), such as https://app.example.com. "*" allows any. If empty, none may.',
    }),
    queue: QueueSettings,
    stand_in: NullableString(
      'GGUF file of the stand-in, which answers for models without a backend. If null, the built-in model.',
    ),
    preload: Type.Boolean({
      default: false,
      description: 'Load the stand-in when the server starts instead of at its first request.',
    }),
    gpu: Type.Boolean({
      default: true,
      description: 'Run the models of this computer on its GPU, if it has one.',
    }),
    idle_minutes: Type.Number({
      default: 10,
      exclusiveMinimum: 0,
      maximum: 100_000,
      description: 'Minutes without a request after which a model of this computer is unloaded.',
    }),
    memory_limit_gib: Type.Unsafe<number | null>({
      type: ['number', 'null'],
      exclusiveMinimum: 0,
      default: null,
      description:
        'Memory that all models of this computer may use together, in GiB. If null, three quarters of its memory.',
    }),
    threads: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      minimum: 1,
      maximum: 256,
      default: null,
      description:
        'Threads per model on this computer. If null, chosen from the number of CPU cores.',
    }),
  },
  { ...section, description: 'The inference API at /v1.' },
);
