// Which messages of a conversation are dropped when it doesn't fit.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ChatMessage } from '#inference/schema.ts';
import { dropOldest } from '#inference/serving/plan.ts';

const call = { id: 'c', type: 'function' as const, function: { name: 'f', arguments: '{}' } };
const conversation: ChatMessage[] = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'one' },
  { role: 'assistant', content: null, tool_calls: [call] },
  { role: 'tool', tool_call_id: 'c', content: 'out' },
  { role: 'tool', tool_call_id: 'c', content: 'more' },
  { role: 'user', content: 'two' },
];
const shown = (messages: ChatMessage[] | null) => messages?.map(({ content }) => content);

test('instructions stay, and outputs go with their call', () => {
  assert.deepEqual(shown(dropOldest(conversation, 0.95)), [
    'Be brief.',
    null,
    'out',
    'more',
    'two',
  ]);
  assert.deepEqual(shown(dropOldest(conversation, 0.8)), ['Be brief.', 'two']);
});

test('the last message is never dropped', () => {
  assert.equal(dropOldest(conversation.slice(-1), 0.9), null);
  assert.equal(dropOldest(conversation.slice(0, 1), 0.9), null);
});
