// The yardstick: a bare Fastify route that returns the same bytes as GET /v1/models, and nothing else.

import Fastify from 'fastify';
import { createCatalog, toModel } from '../src/inference/models/catalog.ts';

const body = Buffer.from(
  JSON.stringify({ object: 'list', data: createCatalog().list().map(toModel) }),
);
const app = Fastify();
app.get('/v1/models', (_request, reply) => {
  reply.type('application/json; charset=utf-8').send(body);
});
await app.listen({ host: '127.0.0.1', port: Number(process.argv[2]) });
