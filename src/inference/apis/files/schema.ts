// Wire types of /v1/files.

import { OneOf, type Static, Type } from '#lib/schema/schema-builder.ts';

/** The id of a file or a batch. */
export const Id = Type.String({ maxLength: 64, pattern: '^[\\w-]*$' });

export const FileParams = Type.Object({ id: Id });

export const FilesQuery = Type.Object({
  after: Type.Optional(Id),
  limit: Type.Optional(Type.String({ pattern: '^(10000|[1-9]\\d{0,3})$' })),
  order: Type.Optional(OneOf(['asc', 'desc'])),
  purpose: Type.Optional(OneOf(['batch', 'batch_output'])),
});
export type FilesQuery = Static<typeof FilesQuery>;

export const FileObject = Type.Object({
  id: Type.String(),
  object: Type.Literal('file'),
  bytes: Type.Integer(),
  created_at: Type.Integer({ description: 'Unix time in seconds.' }),
  expires_at: Type.Integer({ description: 'Unix time in seconds.' }),
  filename: Type.String(),
  purpose: OneOf(['batch', 'batch_output']),
  status: Type.Literal('processed'),
});
export type FileObject = Static<typeof FileObject>;

export const FileList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(FileObject),
  first_id: Type.Union([Type.String(), Type.Null()]),
  last_id: Type.Union([Type.String(), Type.Null()]),
  has_more: Type.Boolean(),
});

export const DeletedFile = Type.Object({
  id: Type.String(),
  object: Type.Literal('file'),
  deleted: Type.Literal(true),
});

/** Describes the form of an upload in /openapi.json. The form itself is parsed as it arrives, see `upload.ts`. */
export const UploadForm = {
  type: 'object',
  required: ['file', 'purpose'],
  properties: {
    file: { type: 'string', format: 'binary', description: 'JSON Lines: one request per line.' },
    purpose: { type: 'string', enum: ['batch'] },
    'expires_after[anchor]': { type: 'string', enum: ['created_at'] },
    'expires_after[seconds]': { type: 'integer', minimum: 3_600, maximum: 2_592_000 },
  },
};
