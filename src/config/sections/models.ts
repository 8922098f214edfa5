// Models, the backends behind each, their health, and weights pulled to this computer: the section models.

import { NullablePattern, section, webAddress } from '#config/field.ts';
import { type UpstreamServer, upstreamServers } from '#inference/engines/upstream/servers.ts';
import { OneOf, Type } from '#lib/schema/schema-builder.ts';

const timeoutMs = (value: number, description: string) =>
  Type.Integer({ default: value, minimum: 1, maximum: 86_400_000, description });

const BackendSettings = Type.Object(
  {
    name: Type.String({
      pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$',
      description: 'Name, unique among the backends of the model.',
    }),
    url: Type.String({
      pattern: webAddress,
      maxLength: 2000,
      description: 'Base URL of its API, e.g. http://10.0.0.5:8000/v1.',
    }),
    api_key: NullablePattern('^[!-~]{1,4096}$', 'API key sent to the backend. None if null.'),
    api_key_env: NullablePattern(
      '^[A-Za-z_][A-Za-z0-9_]*$',
      'Environment variable that holds the API key. Set this or api_key, not both.',
    ),
    model: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      minLength: 1,
      maxLength: 500,
      default: null,
      description: 'Name of the model on the backend. If null, the model id.',
    }),
    server: Type.Unsafe<UpstreamServer>({
      ...OneOf(upstreamServers),
      default: 'openai',
      description: 'Kind of server. openai is any server with an OpenAI-compatible API.',
    }),
    headers: Type.Unsafe<Record<string, string>>({
      type: 'object',
      propertyNames: { pattern: '^[A-Za-z0-9-]{1,100}$' },
      additionalProperties: { type: 'string', pattern: '^[ -~]{0,4096}$' },
      maxProperties: 32,
      default: {},
      description: 'Headers sent with every request.',
    }),
    weight: Type.Number({
      default: 1,
      exclusiveMinimum: 0,
      maximum: 1_000,
      description: 'Share of the load relative to the other backends of the model.',
    }),
    concurrency: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      minimum: 1,
      maximum: 100_000,
      default: null,
      description: 'Maximum number of concurrent requests. No limit if null.',
    }),
    connect_ms: timeoutMs(2_000, 'Timeout for connecting, in milliseconds.'),
    first_byte_ms: timeoutMs(120_000, 'Timeout for the first byte of a response, in milliseconds.'),
    idle_ms: timeoutMs(60_000, 'Timeout between two chunks of a response, in milliseconds.'),
  },
  section,
);

const PriceSettings = Type.Object(
  {
    input: Type.Number({ minimum: 0, maximum: 1_000_000 }),
    output: Type.Number({ minimum: 0, maximum: 1_000_000 }),
  },
  { ...section, description: 'Prices of prompt and completion, in US dollars per million tokens.' },
);

const CatalogModelSettings = Type.Object(
  {
    owned_by: Type.Optional(
      Type.String({ minLength: 1, maxLength: 100, description: 'Owner shown in /v1/models.' }),
    ),
    context_window: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100_000_000,
        description: 'Context window, in tokens.',
      }),
    ),
    max_output_tokens: Type.Optional(
      Type.Unsafe<number | null>({
        type: ['integer', 'null'],
        minimum: 1,
        maximum: 100_000_000,
        description: 'Maximum length of a completion, in tokens. No limit of its own if null.',
      }),
    ),
    vocabulary: Type.Optional(
      Type.Unsafe<'llama3' | 'llama3-chatml' | 'other'>({
        ...OneOf(['llama3', 'llama3-chatml', 'other']),
        description:
          "How prompt tokens are counted: by Llama 3's tokenizer in its own or the ChatML template, or by the backend.",
      }),
    ),
    price: Type.Optional(PriceSettings),
    context_fallback: Type.Optional(
      Type.Unsafe<{ above: number; to: string } | null>({
        type: ['object', 'null'],
        properties: {
          above: { type: 'integer', minimum: 0, maximum: 100_000_000 },
          to: { type: 'string', minLength: 1 },
        },
        required: ['above', 'to'],
        ...section,
        description: 'Model id that serves requests with more than `above` tokens. None if null.',
      }),
    ),
    continue_streams: Type.Optional(
      Type.Boolean({
        description:
          'Continue a broken stream on another backend. If not set, it depends on the kind of server.',
      }),
    ),
    fit_max_tokens: Type.Optional(
      Type.Boolean({
        description:
          "Reduce a chat's `max_tokens` to what the prompt leaves of the window and to max_output_tokens, instead of refusing the request. Default: false.",
      }),
    ),
    think_tags: Type.Optional(
      Type.Unsafe<'split' | 'opened' | 'keep'>({
        ...OneOf(['split', 'opened', 'keep']),
        description:
          'How <think> tags in the text of an upstream are read. split: a thought at the beginning becomes reasoning_content. opened: also one without its opening tag, which some templates write into the prompt. keep: tags are text. Default: split.',
      }),
    ),
    input: Type.Optional(
      Type.Array(OneOf(['text', 'image']), {
        minItems: 1,
        maxItems: 2,
        uniqueItems: true,
        description:
          'What messages to the model may contain. The playground offers to attach images if it has image. Default: [text].',
      }),
    ),
    kind: Type.Optional(
      Type.Unsafe<'chat' | 'embedding' | 'rerank'>({
        ...OneOf(['chat', 'embedding', 'rerank']),
        description:
          'What the model was made for. Requests of another kind are refused before they reach a backend. If not set, the backend decides; a GGUF file says what it is.',
      }),
    ),
    min_dimensions: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000_000,
        description:
          "Smallest number of dimensions that the model's embeddings can be cut to, for models trained for it (Matryoshka). If not set, `dimensions` must be the model's own.",
      }),
    ),
    listed: Type.Optional(
      Type.Boolean({
        description: 'List the model in /v1/models. If false, it answers but is not listed.',
      }),
    ),
    backends: Type.Optional(
      Type.Array(BackendSettings, { maxItems: 256, description: 'Servers that run the model.' }),
    ),
  },
  section,
);

const HealthSettings = Type.Object(
  {
    probe_seconds: Type.Number({
      default: 10,
      exclusiveMinimum: 0,
      maximum: 86_400,
      description: 'Seconds between two probes of a remote backend.',
    }),
    eject_after: Type.Integer({
      default: 3,
      minimum: 1,
      maximum: 1_000,
      description: 'Consecutive failures after which a backend is ejected: it gets no requests.',
    }),
    eject_seconds: Type.Number({
      default: 5,
      exclusiveMinimum: 0,
      maximum: 86_400,
      description: 'Seconds of the first ejection. Each further ejection lasts twice as long.',
    }),
    max_eject_seconds: Type.Number({
      default: 300,
      exclusiveMinimum: 0,
      maximum: 86_400,
      description: 'Maximum length of an ejection, in seconds.',
    }),
  },
  { ...section, description: 'When a backend counts as unhealthy.' },
);

export const ModelSettings = Type.Object(
  {
    hub_url: Type.String({
      default: 'https://huggingface.co',
      pattern: webAddress,
      description: 'Hub that weights are pulled from: Hugging Face, or a hub with the same API.',
    }),
    hub_token: NullablePattern(
      '^[!-~]+$',
      'Token for private and gated repositories. It is sent only to the hub.',
    ),
    pull_concurrency: Type.Integer({
      default: 2,
      minimum: 1,
      maximum: 16,
      description: 'Maximum number of pulls that run at the same time. Others are queued.',
    }),
    disk_reserve_gib: Type.Number({
      default: 5,
      minimum: 0,
      maximum: 1_000_000,
      description:
        'Disk space that pulls leave free, in GiB. A pull that would need it is refused, and one that runs stops.',
    }),
    catalog: Type.Record(Type.String(), CatalogModelSettings, {
      propertyNames: { pattern: '^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}$' },
      maxProperties: 10_000,
      default: {},
      description:
        'Models by id: new ones, changes to built-in ones, and the backends of each. See docs/models.md.',
    }),
    aliases: Type.Record(Type.String(), Type.String({ minLength: 1, maxLength: 100 }), {
      propertyNames: { pattern: '^[A-Za-z*][A-Za-z0-9._:/@*-]{0,99}$' },
      maxProperties: 1_000,
      default: {},
      description:
        'Other names for models, on every endpoint: a name, or a pattern with * such as claude-*, and the id of the model that serves it. Ids of models come first, then the first pattern that matches.',
    }),
    builtin_ids: Type.Boolean({
      default: true,
      description:
        'Offer the built-in list of models. If false, only models of catalog are offered.',
    }),
    health: HealthSettings,
  },
  { ...section, description: 'Models, their backends, and weights pulled to this computer.' },
);
