// The ids by which agents name their conversations choose the backend that holds the prefix.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Task } from '#inference/engine.ts';
import { conversationOf, type InferenceRequest, withConversation } from '#inference/request.ts';
import { hashPrefix } from '#inference/routing/choose-backend.ts';
import { startGateway } from '#test/support/gateway.ts';

const by = (accountId: string, headers: Record<string, string>) => ({
  caller: { accountId, keyId: null, userId: null } as InferenceRequest['caller'],
  headers,
});
const chat: Task = { kind: 'chat', body: { model: 'm', messages: [] } };

test('each agent’s id is found, and a header comes before the body', () => {
  for (const name of ['x-session-affinity', 'session-id', 'x-claude-code-session-id'])
    assert.equal(conversationOf({ [name]: 'one' }, { prompt_cache_key: 'key' }), 'one');
  assert.equal(conversationOf({ 'x-session-id': '' }, { prompt_cache_key: 'key' }), 'key');
  assert.equal(conversationOf({}, { prompt_cache_key: 7 }), undefined);
});

test('an id is the account’s own, and what an API found itself comes first', () => {
  const headers = { 'session-id': 'one' };
  const first = withConversation(chat, by('a', headers));
  assert.deepEqual(withConversation(chat, by('a', headers)), first);
  const other = withConversation(chat, by('b', headers));
  assert.notEqual(hashPrefix(other), hashPrefix(first));
  const own = withConversation({ ...chat, conversation: 'two' } as Task, by('a', headers));
  assert.equal(own.kind === 'chat' && own.conversation, 'a two');
  assert.equal(withConversation(chat, by('a', {})), chat);
});

test('a conversation stays on its backend, whatever its first messages become', async (t) => {
  const { chat: send, upstreams } = await startGateway(t, { upstreams: [{}, {}] });
  const counts = () => upstreams.map(({ requests }) => requests.length);
  const used = new Set<number>();
  for (let session = 0; session < 12; session++) {
    const before = counts();
    for (let turn = 0; turn < 3; turn++) {
      const messages = [{ role: 'user', content: `compacted ${turn} of ${session}` }];
      const headers = { 'x-session-affinity': `session ${session}` };
      await (await send({ messages }, { headers })).json();
    }
    const taken = counts().map((count, at) => count - (before[at] ?? 0));
    assert.deepEqual(taken.toSorted(), [0, 3]);
    used.add(taken.indexOf(3));
  }
  assert.equal(used.size, 2);
});
