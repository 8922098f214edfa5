// Schemas of OpenAI's published response shapes, which official clients rely on. Members that Millrace adds are
// listed too, so that any other member is an error.

import assert from 'node:assert';
import { Ajv } from 'ajv';

const nullable = (schema: object) => ({ anyOf: [schema, { type: 'null' }] });
const strict = (properties: object, required: string[]) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});
const index = { type: 'integer', minimum: 0 };
const finish = { enum: ['stop', 'length', 'tool_calls', 'content_filter'] };

const usage = strict(
  {
    prompt_tokens: index,
    completion_tokens: index,
    total_tokens: index,
    prompt_tokens_details: nullable(strict({ cached_tokens: index }, ['cached_tokens'])),
  },
  ['prompt_tokens', 'completion_tokens', 'total_tokens'],
);

const tokenMembers = {
  token: { type: 'string' },
  logprob: { type: 'number', maximum: 1e-6 },
  bytes: nullable({ type: 'array', items: { type: 'integer', minimum: 0, maximum: 255 } }),
};
const token = strict(tokenMembers, ['token', 'logprob', 'bytes']);
const chatLogprobs = strict(
  {
    content: nullable({
      type: 'array',
      items: strict({ ...tokenMembers, top_logprobs: { type: 'array', items: token } }, [
        'token',
        'logprob',
        'bytes',
        'top_logprobs',
      ]),
    }),
    refusal: { type: 'null' },
  },
  ['content', 'refusal'],
);
const numbers = { type: 'array', items: nullable({ type: 'number' }) };
const completionLogprobs = strict(
  {
    tokens: { type: 'array', items: { type: 'string' } },
    token_logprobs: numbers,
    top_logprobs: nullable({ type: 'array', items: nullable({ type: 'object' }) }),
    text_offset: { type: 'array', items: index },
  },
  ['tokens', 'token_logprobs', 'top_logprobs', 'text_offset'],
);

const toolCall = strict(
  {
    id: { type: 'string', pattern: '^call_[A-Za-z0-9]{24}$' },
    type: { const: 'function' },
    function: strict({ name: { type: 'string' }, arguments: { type: 'string' } }, [
      'name',
      'arguments',
    ]),
  },
  ['id', 'type', 'function'],
);
const toolCallDelta = strict(
  {
    index,
    id: { type: 'string' },
    type: { const: 'function' },
    function: strict({ name: { type: 'string' }, arguments: { type: 'string' } }, ['arguments']),
  },
  ['index', 'function'],
);

const envelope = (prefix: string, object: string, choice: object, more: object) => ({
  ...strict(
    {
      id: { type: 'string', pattern: `^${prefix}-[0-9a-f]{32}$` },
      object: { const: object },
      created: { type: 'integer', minimum: 1_700_000_000, maximum: 4_000_000_000 },
      model: { type: 'string' },
      system_fingerprint: { type: 'null' },
      choices: { type: 'array', items: choice },
      ...more,
    },
    ['id', 'object', 'created', 'model', 'choices'],
  ),
});

const shapes = {
  chat: envelope(
    'chat',
    'chat.completion',
    strict(
      {
        index,
        message: strict(
          {
            role: { const: 'assistant' },
            content: nullable({ type: 'string' }),
            tool_calls: nullable({ type: 'array', minItems: 1, items: toolCall }),
            function_call: { type: 'null' },
            refusal: { type: 'null' },
          },
          ['role', 'content', 'refusal', 'tool_calls', 'function_call'],
        ),
        logprobs: nullable(chatLogprobs),
        finish_reason: finish,
      },
      ['index', 'message', 'logprobs', 'finish_reason'],
    ),
    { usage, service_tier: { type: 'null' } },
  ),
  chatChunk: envelope(
    'chat',
    'chat.completion.chunk',
    strict(
      {
        index,
        delta: strict(
          {
            role: { const: 'assistant' },
            content: nullable({ type: 'string' }),
            tool_calls: { type: 'array', items: toolCallDelta },
          },
          [],
        ),
        logprobs: nullable(chatLogprobs),
        finish_reason: nullable(finish),
      },
      ['index', 'delta', 'finish_reason'],
    ),
    { usage: nullable(usage) },
  ),
  completion: envelope(
    'cmpl',
    'text_completion',
    strict(
      {
        index,
        text: { type: 'string' },
        logprobs: nullable(completionLogprobs),
        finish_reason: nullable(finish),
        stop_reason: nullable({ type: ['string', 'integer'] }),
        prompt_logprobs: nullable({ type: 'array' }),
      },
      ['index', 'text', 'logprobs', 'finish_reason', 'stop_reason'],
    ),
    { usage: nullable(usage) },
  ),
};

const ajv = new Ajv({ strict: false, allErrors: true });
const validators = {
  chat: ajv.compile(shapes.chat),
  chatChunk: ajv.compile(shapes.chatChunk),
  completion: ajv.compile(shapes.completion),
};

export function assertShape(kind: keyof typeof shapes, value: unknown): void {
  const validate = validators[kind];
  assert(validate(value), `${ajv.errorsText(validate.errors)}\n${JSON.stringify(value)}`);
}

/** Parses the data of each event of a stream, which must end with [DONE]. */
export function parseEvents(text: string): unknown[] {
  const events = text
    .split('\n\n')
    .filter((part) => part.startsWith('data: '))
    .map((part) => part.slice(6));
  assert.equal(events.pop(), '[DONE]');
  return events.map((event) => JSON.parse(event));
}
