// The settings of models that stand for themselves: ids, the backends behind each, and when a backend counts
// as unwell.

import { Type } from '#lib/schema/schema-builder.ts';
import { OneOf } from '#lib/schema/validation-error.ts';

const closed = { additionalProperties: false } as const;
const milliseconds = (value: number) =>
  Type.Integer({ default: value, minimum: 1, maximum: 86_400_000 });

const backendServers = ['vllm', 'sglang', 'llama-server', 'ollama', 'openai'] as const;

const NullableText = (pattern: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], pattern, default: null });

const BackendSettings = Type.Object(
  {
    name: Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$' }),
    url: Type.String({ pattern: '^https?://[^\\s?#@]+$', maxLength: 2000 }),
    api_key: NullableText('^[!-~]{1,4096}$'),
    api_key_env: NullableText('^[A-Za-z_][A-Za-z0-9_]*$'),
    model: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      minLength: 1,
      maxLength: 500,
      default: null,
    }),
    server: Type.Unsafe<(typeof backendServers)[number]>({
      ...OneOf(backendServers),
      default: 'openai',
    }),
    headers: Type.Unsafe<Record<string, string>>({
      type: 'object',
      propertyNames: { pattern: '^[A-Za-z0-9-]{1,100}$' },
      additionalProperties: { type: 'string', pattern: '^[ -~]{0,4096}$' },
      maxProperties: 32,
      default: {},
    }),
    weight: Type.Number({ default: 1, exclusiveMinimum: 0, maximum: 1_000 }),
    concurrency: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      minimum: 1,
      maximum: 100_000,
      default: null,
    }),
    connect_ms: milliseconds(2_000),
    first_byte_ms: milliseconds(120_000),
    idle_ms: milliseconds(60_000),
  },
  closed,
);

const CatalogModelSettings = Type.Object(
  {
    owned_by: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
    context_window: Type.Optional(Type.Integer({ minimum: 1, maximum: 100_000_000 })),
    max_output_tokens: Type.Optional(
      Type.Unsafe<number | null>({
        type: ['integer', 'null'],
        minimum: 1,
        maximum: 100_000_000,
      }),
    ),
    vocabulary: Type.Optional(OneOf(['llama3', 'llama3-chatml', 'other'])),
    price: Type.Optional(
      Type.Object(
        {
          input: Type.Number({ minimum: 0, maximum: 1_000_000 }),
          output: Type.Number({ minimum: 0, maximum: 1_000_000 }),
        },
        closed,
      ),
    ),
    context_fallback: Type.Optional(
      Type.Unsafe<{ above: number; to: string } | null>({
        type: ['object', 'null'],
        properties: {
          above: { type: 'integer', minimum: 0, maximum: 100_000_000 },
          to: { type: 'string', minLength: 1 },
        },
        required: ['above', 'to'],
        ...closed,
      }),
    ),
    continue_streams: Type.Optional(Type.Boolean()),
    listed: Type.Optional(Type.Boolean()),
    backends: Type.Optional(Type.Array(BackendSettings, { maxItems: 256 })),
  },
  closed,
);

export const modelSettings = {
  catalog: Type.Record(Type.String(), CatalogModelSettings, {
    propertyNames: { pattern: '^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}$' },
    maxProperties: 10_000,
    default: {},
    description:
      'Models by id: what changes of a known one, or a new one, and the backends of each. See docs/models.md.',
  }),
  builtin_ids: Type.Boolean({
    default: true,
    description: 'Offer the models known from the start. false offers only what catalog names.',
  }),
  health: Type.Object(
    {
      probe_seconds: Type.Number({
        default: 10,
        exclusiveMinimum: 0,
        maximum: 86_400,
        description: 'How often each backend elsewhere is asked whether it is there.',
      }),
      eject_after: Type.Integer({
        default: 3,
        minimum: 1,
        maximum: 1_000,
        description: 'Failures in a row after which a backend gets no requests for a while.',
      }),
      eject_seconds: Type.Number({
        default: 5,
        exclusiveMinimum: 0,
        maximum: 86_400,
        description: 'How long that is the first time; twice as long each time after.',
      }),
      eject_seconds_most: Type.Number({
        default: 300,
        exclusiveMinimum: 0,
        maximum: 86_400,
        description: 'How long it is at most.',
      }),
    },
    { ...closed, description: 'When a backend counts as unwell.' },
  ),
};
