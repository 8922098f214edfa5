// Images over HTTP. An upload is streamed to the host, so that its size doesn't matter here; or JSON says
// where the host finds the image.

import type { Readable } from 'node:stream';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Authenticator, requireRole } from '#accounts/authenticate.ts';
import type { ImageSource } from '#cloud/drivers/driver.ts';
import { allowLongBody } from '#http/body/upload-timeout.ts';
import { invalidBody } from '#lib/errors.ts';
import { Type } from '#lib/schema/schema-builder.ts';
import type { HostImages } from './host-images.ts';
import { HostImage, ImageOrigin, ImageParams } from './schema.ts';

const uploads = /^(application\/octet-stream|multipart\/form-data)\s*(;|$)/i;

export function imageRoutes(
  scope: FastifyInstance,
  authenticator: Authenticator,
  hostImages: HostImages,
): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  authenticator.requireSession(scope);
  scope.addContentTypeParser(uploads, (_request, body, done) => done(null, body));

  app.get(
    '/images',
    { schema: { response: { 200: Type.Object({ data: Type.Array(HostImage) }) } } },
    async () => ({ data: hostImages.list() }),
  );
  app.post(
    '/images/:host/:name',
    {
      schema: {
        params: ImageParams,
        body: {
          content: {
            'application/json': { schema: ImageOrigin },
            'application/octet-stream': { schema: Type.Unknown() },
            'multipart/form-data': { schema: Type.Unknown() },
          },
        },
        response: { 200: HostImage },
      },
    },
    async (request) => {
      const principal = requireRole(request, 'owner');
      return hostImages.add(principal, request.params, toSource(request));
    },
  );
}

function toSource(request: FastifyRequest): ImageSource {
  const type = request.headers['content-type'] ?? '';
  if (uploads.test(type)) {
    allowLongBody(request.raw);
    const bytes = Number(request.headers['content-length'] ?? Number.NaN);
    const body = request.body as Readable;
    return { kind: 'upload', body, type, bytes: Number.isNaN(bytes) ? null : bytes };
  }
  const { fingerprint, remote, image, recipe } = request.body as ImageOrigin;
  if (fingerprint != null) return { kind: 'known', fingerprint };
  if (recipe != null) return { kind: 'recipe' };
  if (remote == null || image == null) {
    throw invalidBody('Give remote and image, a fingerprint, or a recipe.', 'remote');
  }
  return { kind: 'remote', remote, image };
}
