// The routes of /v1/files.

import { Readable } from 'node:stream';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { type Authenticator, principalOf } from '#accounts/authenticate.ts';
import type { FileRow } from '#db/tables/batch-rows.ts';
import { discard } from '#http/body/bodies.ts';
import { allowLongBody } from '#http/body/upload-timeout.ts';
import { onClosed } from '#http/client-disconnect.ts';
import { inJson } from '#inference/apis/response-schemas.ts';
import { notAForm } from './errors.ts';
import type { Files } from './files.ts';
import { toListBody } from './list-page.ts';
import { DeletedFile, FileList, FileObject, FileParams, FilesQuery, UploadForm } from './schema.ts';
import { Transfers } from './transfers.ts';
import { receiveUpload } from './upload.ts';

const tags = ['Inference'];
const consumes = ['multipart/form-data'];
const defaultLimit = 10_000;

export function fileRoutes(
  scope: FastifyInstance,
  files: Files,
  authenticator: Authenticator,
): void {
  scope.register(async (app) => uploadRoute(app, files, authenticator));
  const downloads = new Transfers();
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  app.get(
    '/files',
    {
      schema: { tags, summary: 'List files', querystring: FilesQuery, response: inJson(FileList) },
    },
    async (request) => {
      const { limit = defaultLimit, order = 'desc', after, purpose } = request.query;
      const { accountId } = principalOf(request);
      const page = await files.list(accountId, purpose, { limit: Number(limit), order, after });
      return toListBody(page, toFileObject);
    },
  );
  app.get(
    '/files/:id',
    { schema: { tags, summary: 'Get one file', params: FileParams, response: inJson(FileObject) } },
    async (request) =>
      toFileObject(await files.get(principalOf(request).accountId, request.params.id)),
  );
  app.get(
    '/files/:id/content',
    {
      schema: { tags, summary: 'Download a file', params: FileParams, response: content },
      // Fastify would read the whole file for a HEAD, at full speed and also after the client has left.
      exposeHeadRoute: false,
    },
    async (request, reply) => {
      const { accountId } = principalOf(request);
      const { id, bytes } = await files.get(accountId, request.params.id);
      onClosed(reply.raw, downloads.begin(accountId));
      return reply
        .type('application/octet-stream')
        .header('content-length', bytes)
        .header('content-disposition', 'attachment')
        .send(Readable.from(files.read(id), { highWaterMark: 1 }));
    },
  );
  app.delete(
    '/files/:id',
    {
      schema: { tags, summary: 'Delete a file', params: FileParams, response: inJson(DeletedFile) },
    },
    async (request) => {
      const { id } = request.params;
      await files.delete(principalOf(request).accountId, id);
      return { id, object: 'file', deleted: true };
    },
  );
}

/** In a scope of its own, because only this route reads forms. */
function uploadRoute(app: FastifyInstance, files: Files, authenticator: Authenticator): void {
  const uploads = new Transfers();
  app.addContentTypeParser('multipart/form-data', (request, payload, done) => {
    allowLongBody(request.raw);
    done(null, payload);
  });
  app.post(
    '/files',
    {
      schema: {
        tags,
        summary: 'Upload a file',
        consumes,
        body: UploadForm,
        response: inJson(FileObject),
      },
      // The form is checked as it arrives.
      validatorCompiler: () => () => true,
    },
    async (request) => {
      const { raw } = request;
      if (request.body !== raw) throw notAForm();
      const { accountId } = principalOf(request);
      const recheck = () => authenticator.recheck(request, 'inference');
      let end = () => {};
      try {
        end = uploads.begin(accountId);
        return toFileObject(await receiveUpload(files, accountId, raw, recheck));
      } catch (error) {
        // Most clients read the response only after they have sent everything.
        if (!raw.complete) discard(raw, files.limits.maxFileBytes);
        throw error;
      } finally {
        end();
      }
    },
  );
}

const toFileObject = (row: FileRow): FileObject => ({
  id: row.id,
  object: 'file',
  bytes: row.bytes,
  created_at: Math.floor(row.created_at / 1000),
  expires_at: Math.floor((row.expires_at ?? 0) / 1000),
  filename: row.filename,
  purpose: row.purpose,
  status: 'processed',
});

const content = {
  200: {
    content: { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } },
  },
};
