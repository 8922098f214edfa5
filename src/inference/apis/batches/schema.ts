// Wire types of /v1/batches.

import { Id } from '#inference/apis/files/schema.ts';
import { Maybe, OneOf, type Static, Type } from '#lib/schema/schema-builder.ts';

export const BatchParams = Type.Object({ id: Id });

export const BatchesQuery = Type.Object({
  after: Type.Optional(Id),
  limit: Type.Optional(Type.String({ pattern: '^(100|[1-9]\\d?)$' })),
});

export const NewBatch = Type.Object({
  input_file_id: Id,
  endpoint: Type.String({
    maxLength: 100,
    description: 'The endpoint of every line, such as /v1/chat/completions.',
  }),
  completion_window: Type.String({
    pattern: '^([1-9]\\d{0,3})(m|h|d)$',
    description:
      'Time after which lines that were not run are given up: minutes, hours or days, up to 30d.',
  }),
  metadata: Maybe(
    Type.Record(Type.String(), Type.String({ maxLength: 512 }), {
      maxProperties: 16,
      propertyNames: { maxLength: 64 },
    }),
  ),
  output_expires_after: Maybe(
    Type.Object({
      anchor: Type.Literal('created_at'),
      seconds: Type.Integer({ minimum: 3_600, maximum: 2_592_000 }),
    }),
  ),
});
export type NewBatch = Static<typeof NewBatch>;

const MaybeTime = Type.Union([Type.Integer(), Type.Null()]);
const MaybeText = Type.Union([Type.String(), Type.Null()]);

export const BatchLineError = Type.Object({
  code: Type.String(),
  line: MaybeTime,
  message: Type.String(),
  param: MaybeText,
});
export type BatchLineError = Static<typeof BatchLineError>;

export const BatchObject = Type.Object({
  id: Type.String(),
  object: Type.Literal('batch'),
  endpoint: Type.String(),
  status: OneOf([
    'validating',
    'failed',
    'in_progress',
    'finalizing',
    'completed',
    'expired',
    'cancelling',
    'cancelled',
  ]),
  errors: Type.Union([
    Type.Object({ object: Type.Literal('list'), data: Type.Array(BatchLineError) }),
    Type.Null(),
  ]),
  input_file_id: Type.String(),
  completion_window: Type.String(),
  output_file_id: MaybeText,
  error_file_id: MaybeText,
  created_at: Type.Integer(),
  in_progress_at: MaybeTime,
  expires_at: Type.Integer(),
  finalizing_at: MaybeTime,
  completed_at: MaybeTime,
  failed_at: MaybeTime,
  expired_at: MaybeTime,
  cancelling_at: MaybeTime,
  cancelled_at: MaybeTime,
  request_counts: Type.Object({
    total: Type.Integer(),
    completed: Type.Integer(),
    failed: Type.Integer(),
  }),
  metadata: Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()]),
});
export type BatchObject = Static<typeof BatchObject>;

export const BatchList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(BatchObject),
  first_id: MaybeText,
  last_id: MaybeText,
  has_more: Type.Boolean(),
});
