// Saved conversations and presets of the playground: who sees which, what is found, and their bounds.

import assert from 'node:assert';
import { before, describe, test } from 'node:test';
import type { Conversation, ConversationSummary } from '#accounts/conversations/schema.ts';
import { openExistingDatabase } from '#db/open.ts';
import { bothDatabases } from '#test/support/databases.ts';
import { type SessionFetch, startTestServer, type TestServer } from '#test/support/server.ts';

const api = '/dashboard/api';
const settings = { system: '', settings: {}, tools: '', schema: '', logprobs: false };
const content = (...texts: string[]) => ({
  ...settings,
  models: ['hermes3-8b'],
  turns: texts.map((text, at) => ({ id: String(at), role: at % 2 ? 'assistant' : 'user', text })),
});

async function call<Answer>(session: SessionFetch, path: string, init = {}, status = 200) {
  const response = await session(`${api}${path}`, init);
  const text = await response.text();
  assert.equal(response.status, status, text);
  return JSON.parse(text) as Answer;
}

interface Refused {
  error: { code: string; message: string };
}

for (const database of bothDatabases) {
  describe(`conversations on ${database}`, () => {
    let server: TestServer;
    let owner: SessionFetch;
    let member: SessionFetch;
    let viewer: SessionFetch;
    before(async () => {
      server = await startTestServer({ database });
      owner = await server.join();
      const invite = async (role: string) => {
        const { link } = await call<{ link: string }>(owner, '/invitations', { json: { role } });
        return server.joinBy(link, `${role}@example.com`);
      };
      [member, viewer] = [await invite('member'), await invite('viewer')];
    });

    const create = (session: SessionFetch, name: string, ...texts: string[]) =>
      call<ConversationSummary>(session, '/playground/conversations', {
        json: { name, content: content(...texts) },
      });
    const change = <Answer = ConversationSummary>(
      session: SessionFetch,
      id: string,
      json: object,
      status = 200,
    ) =>
      call<Answer>(session, `/playground/conversations/${id}`, { method: 'PATCH', json }, status);
    const names = async (session: SessionFetch, query = '') => {
      const path = `/playground/conversations${query}`;
      const { data } = await call<{ data: ConversationSummary[] }>(session, path);
      return data.map(({ name }) => name);
    };

    test('a conversation is read as it was saved, only by the person who saved it', async () => {
      const { id } = await create(member, 'Mills', 'What is a mill?', 'A machine. \u0000 \ud800');
      const saved = await call<Conversation>(member, `/playground/conversations/${id}`);
      assert.deepEqual(saved.content, content('What is a mill?', 'A machine. \u0000 \ud800'));
      assert.deepEqual([saved.own, saved.shared], [true, false]);
      for (const other of [owner, viewer])
        await call(other, `/playground/conversations/${id}`, {}, 404);
      assert.deepEqual(await names(owner), []);
      await call(owner, `/playground/conversations/${id}`, { method: 'DELETE' }, 404);
      await call(member, `/playground/conversations/${id}`, { method: 'DELETE' });
      await call(member, `/playground/conversations/${id}`, {}, 404);
    });

    test('a shared conversation is read by every member, and changed by none of them', async () => {
      const { id } = await create(member, 'Rivers', 'Why do rivers bend?');
      await change(member, id, { shared: true });
      for (const other of [owner, viewer]) {
        const seen = await call<Conversation>(other, `/playground/conversations/${id}`);
        assert.deepEqual([seen.own, seen.owner_email], [false, 'member@example.com']);
      }
      await change(owner, id, { name: 'Mine' }, 404);
      await call(owner, `/playground/conversations/${id}`, { method: 'DELETE' }, 404);
      await change(member, id, { shared: false });
      await call(owner, `/playground/conversations/${id}`, {}, 404);
      const log = await call<{ data: { action: string; resource_id: string }[] }>(
        owner,
        '/audit-events',
      );
      const actions = log.data.filter((event) => event.resource_id === id);
      assert.deepEqual(actions.map(({ action }) => action).sort(), [
        'conversation.shared',
        'conversation.unshared',
      ]);
      await call(member, `/playground/conversations/${id}`, { method: 'DELETE' });
    });

    test('conversations are found by name and by text, in any case, last changed first', async () => {
      const first = await create(owner, 'Über Mühlen', 'Ein Rad? 100%_sure', 'Ja.');
      await create(owner, 'Cooking', 'How long do eggs take?', 'SEVEN minutes.');
      assert.deepEqual(await names(owner, '?search=MÜHLEN'), ['Über Mühlen']);
      assert.deepEqual(await names(owner, '?search=seven'), ['Cooking']);
      assert.deepEqual(await names(owner, '?search=0%25_s'), ['Über Mühlen']);
      assert.deepEqual(await names(owner, '?search=hermes3'), [], 'only names and messages');
      await change(owner, first.id, { name: 'Wheels', content: content('?'), revision: 1 });
      assert.deepEqual(await names(owner), ['Wheels', 'Cooking']);
      assert.deepEqual(await names(owner, '?search=mühlen'), []);
      assert.deepEqual(await names(member, '?search=wheels'), []);
    });

    test('a search reads a bounded part of each conversation', async () => {
      const long = Array.from({ length: 40 }, (_, at) => `Turn${at} ${'a'.repeat(100_000)} end`);
      const { id } = await create(owner, 'Endless', ...long);
      assert.deepEqual(await names(owner, '?search=endless'), ['Endless']);
      assert.deepEqual(await names(owner, '?search=turn3+a'), ['Endless']);
      const { databaseUrl: url, dataDir } = server;
      const db = await openExistingDatabase({ url, poolSize: 1, dataDir });
      const { search_text: text } = await db
        .selectFrom('conversations')
        .select('search_text')
        .where('id', '=', id)
        .executeTakeFirstOrThrow();
      await db.destroy();
      assert.ok(text.length <= 16_000, `${text.length} characters`);
      await call(owner, `/playground/conversations/${id}`, { method: 'DELETE' });
    });

    test('content that another window has replaced meanwhile is refused', async () => {
      const { id, revision } = await create(owner, 'Twice', 'One');
      const next = await change(owner, id, { content: content('One', 'Two'), revision });
      assert.equal(next.revision, revision + 1);
      const late = { content: content('One', 'Three'), revision };
      const { error } = await change<Refused>(owner, id, late, 409);
      assert.match(error.message, /changed in another window/);
      await change(owner, id, { content: content('One') }, 400);
      const { content: kept } = await call<Conversation>(owner, `/playground/conversations/${id}`);
      assert.equal(kept.turns[1]?.text, 'Two');
    });

    test('what is not an image that a browser can show safely is refused', async () => {
      for (const image of ['https://example.com/a.png', 'data:image/svg+xml;base64,AAAA']) {
        const turns = [{ id: '1', role: 'user', text: '', images: [image] }];
        const json = { name: 'Image', content: { ...content(), turns } };
        await call(owner, '/playground/conversations', { json }, 400);
      }
    });

    test('the number and the size of conversations are bounded', async () => {
      const json = { name: 'Long', content: content('x'.repeat(4_194_304)) };
      await call(owner, '/playground/conversations', { json }, 413);
      const { databaseUrl: url, dataDir } = server;
      const db = await openExistingDatabase({ url, poolSize: 1, dataDir });
      const { id } = await create(member, 'Full', 'Hi');
      const row = await db
        .selectFrom('conversations')
        .selectAll()
        .where('id', '=', id)
        .executeTakeFirstOrThrow();
      const set = (bytes: number) =>
        db.updateTable('conversations').set({ bytes }).where('id', '=', id).execute();
      await set(64 * 1024 * 1024);
      const full = { json: { name: 'One more', content: content('Hi') } };
      const { error } = await call<Refused>(member, '/playground/conversations', full, 409);
      assert.match(error.message, /64 MiB, the maximum\. Delete some, or use a temporary chat\./);
      await set(10);
      for (let n = 1; n < 1_000; n += 500) {
        const count = Math.min(500, 1_000 - n);
        const copies = Array.from({ length: count }, (_, at) => ({
          ...row,
          id: (n + at).toString(16).padStart(32, '0'),
        }));
        await db.insertInto('conversations').values(copies).execute();
      }
      await db.destroy();
      const many = await call<Refused>(member, '/playground/conversations', full, 409);
      assert.match(many.error.message, /1000 saved conversations, the maximum/);
      await change(member, id, { content: content('Hi', 'Hello'), revision: 1 });
    });

    test('a preset replaces the one of the same name, and belongs to one person', async () => {
      const save = (system: string) =>
        call<{ id: string }>(owner, '/playground/presets', {
          method: 'PUT',
          json: { name: 'Brief', settings: { ...settings, system } },
        });
      const [first, second] = [await save('Be brief.'), await save('Be very brief.')];
      assert.equal(first.id, second.id);
      const list = async (session: SessionFetch) =>
        (await call<{ data: { settings: object }[] }>(session, '/playground/presets')).data;
      assert.deepEqual((await list(owner))[0]?.settings, { ...settings, system: 'Be very brief.' });
      assert.deepEqual(await list(member), []);
      const large = { name: 'Large', settings: { ...settings, tools: 'x'.repeat(65_536) } };
      await call(owner, '/playground/presets', { method: 'PUT', json: large }, 400);
      await call(member, `/playground/presets/${first.id}`, { method: 'DELETE' }, 404);
      await call(owner, `/playground/presets/${first.id}`, { method: 'DELETE' });
      assert.deepEqual(await list(owner), []);
    });

    test('removing a person deletes their conversations', async () => {
      const { data } = await call<{ data: { id: string; role: string }[] }>(owner, '/members');
      const { id } = data.find(({ role }) => role === 'member') ?? { id: '' };
      await call(owner, `/members/${id}`, { method: 'DELETE' });
      const { databaseUrl: url, dataDir } = server;
      const db = await openExistingDatabase({ url, poolSize: 1, dataDir });
      const left = await db.selectFrom('conversations').select('user_id').execute();
      await db.destroy();
      assert.equal(
        left.some(({ user_id }) => user_id === id),
        false,
      );
    });
  });
}
