// The inference API at /v1 and the models that run on this computer: the section inference.

import { section } from '#config/field.ts';
import { Type } from '#lib/schema/schema-builder.ts';
import { BatchSettings } from './batches.ts';

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

const ResponseSettings = Type.Object(
  {
    keep_days: Type.Integer({
      default: 30,
      minimum: 1,
      maximum: 36_500,
      description: 'Days that a stored response is kept.',
    }),
    max_mib: Type.Integer({
      default: 1024,
      minimum: 16,
      maximum: 1_048_576,
      description:
        'Maximum size of the stored responses of one account, in MiB. Beyond it, its oldest responses are deleted.',
    }),
    max_background: Type.Integer({
      default: 100,
      minimum: 0,
      maximum: 100_000,
      description:
        'Maximum number of background responses of one account that are queued or in progress.',
    }),
  },
  {
    ...section,
    description: 'Responses of /v1/responses that are stored, unless a request sets store: false.',
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
    image_hosts: Type.Array(Type.String({ pattern: '^(\\*\\.)?[a-z0-9.-]+(:[0-9]{1,5})?$' }), {
      default: [],
      maxItems: 1_000,
      description:
        'Hosts, such as images.example.com or *.example.com, whose images the server fetches by https for requests that name their address. Private networks are never reached. If empty, images must be sent as data URLs.',
    }),
    keep_alive_seconds: Type.Number({
      default: 15,
      minimum: 0.05,
      maximum: 300,
      description:
        'Seconds of silence after which a stream is kept alive, so that proxies and clients do not give it up. Streams of Responses, Messages and Ollama are opened after this time even if the model has not begun.',
    }),
    queue: QueueSettings,
    responses: ResponseSettings,
    batches: BatchSettings,
    stand_in: Type.Unsafe<string | boolean | null>({
      type: ['string', 'boolean', 'null'],
      minLength: 1,
      default: null,
      description:
        'GGUF file of the stand-in, which answers for models that never had a backend. If null or true, a small model that is built in. If false, such models are not served.',
    }),
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
      // 24 days, because Node fires a longer timer at once.
      maximum: 35_000,
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
