// The endpoints of saved conversations and presets. They have a scope of their own, because their bodies are larger
// than those of the dashboard's other endpoints.

import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { type Authenticator, requireRole, sessionOf } from '#accounts/authenticate.ts';
import { accountsErrorFormat } from '#accounts/errors.ts';
import { toPageOptions } from '#accounts/paging.ts';
import { IdParams } from '#accounts/schema.ts';
import type { PresetRow } from '#db/tables/account-rows.ts';
import { applyErrorFormat } from '#http/error-format.ts';
import type { Conversations, SummaryRow } from './conversations.ts';
import type { Presets } from './presets.ts';
import {
  type Conversation,
  ConversationChange,
  type ConversationSummary,
  ConversationsQuery,
  NewConversation,
  NewPreset,
  type Preset,
} from './schema.ts';

export interface ConversationParts {
  authenticator: Authenticator;
  conversations: Conversations;
  presets: Presets;
}

const bodies = { maxBytes: 4_194_304, maxValues: 200_000, anyContentType: false };

export function conversationRoutes(scope: FastifyInstance, parts: ConversationParts): void {
  const { authenticator, conversations, presets } = parts;
  applyErrorFormat(scope, accountsErrorFormat, bodies);
  authenticator.requireSession(scope);
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();

  app.get('/conversations', { schema: { querystring: ConversationsQuery } }, async (request) => {
    const options = { search: request.query.search, ...toPageOptions(request.query) };
    const { data, next } = await conversations.list(sessionOf(request), options);
    return { data: data.map(toSummary), next };
  });
  app.get('/conversations/:id', { schema: { params: IdParams } }, async (request) => {
    const session = sessionOf(request);
    const row = await conversations.get(session, request.params.id);
    const own = row.user_id === session.userId;
    const content = JSON.parse(row.content);
    return { ...toSummary(row), own, owner_email: row.email, content } satisfies Conversation;
  });
  app.post('/conversations', { schema: { body: NewConversation } }, async (request) =>
    toSummary(await conversations.create(requireRole(request, 'owner', 'member'), request.body)),
  );
  app.patch(
    '/conversations/:id',
    { schema: { params: IdParams, body: ConversationChange } },
    async (request) => {
      const session = requireRole(request, 'owner', 'member');
      return toSummary(await conversations.update(session, request.params.id, request.body));
    },
  );
  app.delete('/conversations/:id', { schema: { params: IdParams } }, async (request) => {
    await conversations.remove(requireRole(request, 'owner', 'member'), request.params.id);
    return { ok: true };
  });

  app.get('/presets', async (request) => ({
    data: (await presets.list(sessionOf(request))).map(toPreset),
  }));
  app.put('/presets', { schema: { body: NewPreset } }, async (request) =>
    toPreset(await presets.save(requireRole(request, 'owner', 'member'), request.body)),
  );
  app.delete('/presets/:id', { schema: { params: IdParams } }, async (request) => {
    await presets.remove(requireRole(request, 'owner', 'member'), request.params.id);
    return { ok: true };
  });
}

const toSummary = (row: SummaryRow): ConversationSummary => ({
  id: row.id,
  name: row.name,
  shared: row.shared === 1,
  revision: row.revision,
  created_at: new Date(row.created_at).toISOString(),
  updated_at: new Date(row.updated_at).toISOString(),
});

const toPreset = ({ id, name, settings }: PresetRow): Preset => ({
  id,
  name,
  settings: JSON.parse(settings),
});
