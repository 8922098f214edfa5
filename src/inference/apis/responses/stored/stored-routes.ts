// The routes of stored responses.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { principalOf } from '#accounts/authenticate.ts';
import type { HeaderList } from '#http/response-headers.ts';
import type { Follow } from '#inference/apis/endpoint.ts';
import type { ResponsesParts } from '#inference/apis/responses/parts.ts';
import { ResponseSchema } from '#inference/apis/responses/response-schemas.ts';
import { InputItem } from '#inference/apis/responses/schema.ts';
import { noNul, OneOf, Type } from '#lib/schema/schema-builder.ts';

/** Sends what is followed as the stream of a response. */
export type SendStream = (
  request: FastifyRequest,
  reply: FastifyReply,
  follow: Follow,
  headers?: Readonly<HeaderList>,
) => Promise<void>;

const Params = Type.Object({ response_id: Type.String({ maxLength: 256, pattern: noNul.any }) });

const GetQuery = Type.Object({
  stream: Type.Optional(OneOf(['true', 'false'])),
  starting_after: Type.Optional(
    Type.String({
      pattern: '^\\d{1,9}$',
      description: 'With stream: the sequence number of the last event that the client has.',
    }),
  ),
});

const ItemsQuery = Type.Object({
  after: Type.Optional(Type.String({ maxLength: 512, pattern: noNul.any })),
  limit: Type.Optional(Type.String({ pattern: '^(100|[1-9]\\d?)$' })),
  order: Type.Optional(OneOf(['asc', 'desc'])),
});

const Deleted = Type.Object({
  id: Type.String(),
  object: Type.Literal('response'),
  deleted: Type.Literal(true),
});

const NullableId = Type.Union([Type.String(), Type.Null()]);

const ItemList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(InputItem),
  first_id: NullableId,
  last_id: NullableId,
  has_more: Type.Boolean(),
});

const tags = ['Inference'];
const defaultItems = 20;

export function storedRoutes(
  scope: FastifyInstance,
  parts: ResponsesParts,
  stream: SendStream,
): void {
  const { store, background, followers } = parts;
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const accountOf = (request: FastifyRequest) => principalOf(request).accountId;

  app.get(
    '/responses/:response_id',
    route('Get one response', ResponseSchema, { querystring: GetQuery }),
    async (request, reply) => {
      const { response_id: id } = request.params;
      const { stream: streams, starting_after: after = -1 } = request.query;
      if (streams !== 'true') return store.get(accountOf(request), id);
      await stream(request, reply, await followers.open(accountOf(request), id, Number(after)));
      return reply;
    },
  );
  app.delete('/responses/:response_id', route('Delete a response', Deleted), async (request) => {
    const { response_id: id } = request.params;
    await store.remove(accountOf(request), id);
    return { id, object: 'response', deleted: true };
  });
  app.post(
    '/responses/:response_id/cancel',
    route('Cancel a background response', ResponseSchema),
    (request) => background.cancel(accountOf(request), request.params.response_id),
  );
  app.get(
    '/responses/:response_id/input_items',
    route('List the input of a response', ItemList, { querystring: ItemsQuery }),
    async (request) => {
      const { after, limit = defaultItems, order = 'desc' } = request.query;
      const page = { after, limit: Number(limit), order };
      const { response_id: id } = request.params;
      const { data, hasMore } = await store.listInput(accountOf(request), id, page);
      const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
      return { object: 'list', data, first_id, last_id, has_more: hasMore };
    },
  );
}

/** The response is only documented: a schema used for serialization would drop members it does not know. */
const route = <Given extends object>(summary: string, schema: object, given?: Given) => ({
  schema: {
    tags,
    summary,
    params: Params,
    response: { 200: { content: { 'application/json': { schema } } } },
    ...(given as Given),
  },
});
