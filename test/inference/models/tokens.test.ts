// Counts of the Llama-3 family without weights, held against the real template's text in the real vocabulary.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { fromBytes } from 'hypertok';
import type { Task } from '#inference/engine.ts';
import { createLlama3Counter } from '#inference/models/tokens.ts';
import type { ChatMessage, CompletionRequest } from '#inference/schema.ts';

const vocabulary = new URL(import.meta.resolve('@hypertok/vocab-llama3/vocab.htk'));
const tokenizer = await fromBytes(await readFile(vocabulary), { tier: 'single' });
/** With the special tokens as such. */
const countText = (text: string) =>
  tokenizer.encodeSync(text, { reserved: { match: 'all' } }).length;

const counter = createLlama3Counter();

const countPrompt = (prompt: CompletionRequest['prompt'], limit = 1e6) => {
  const task: Task = { kind: 'completion', body: { model: 'm', prompt } };
  return counter.count(task, 'llama3', limit);
};

/** Llama 3.1's own template, as its model card writes it out, for messages without tools. */
function render(messages: readonly ChatMessage[]): string {
  const turn = (role: string, text: string) =>
    `<|start_header_id|>${role}<|end_header_id|>\n\n${text}<|eot_id|>`;
  const [first] = messages;
  const system = first?.role === 'system' ? String(first.content).trim() : '';
  const rest = first?.role === 'system' ? messages.slice(1) : messages;
  const dates = 'Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n';
  return [
    '<|begin_of_text|>',
    turn('system', dates + system),
    ...rest.map(({ role, content }) => turn(role, String(content).trim())),
    '<|start_header_id|>assistant<|end_header_id|>\n\n',
  ].join('');
}

describe('counts of the Llama-3 family', () => {
  it('the test knows special tokens from text', () => {
    assert.equal(countText('<|begin_of_text|><|eot_id|>'), 2);
  });

  const user = { role: 'user', content: '  Wie geht es, 水車? 👩‍🔧\n' } as const;
  const conversations: Record<string, ChatMessage[]> = {
    'one message': [user],
    'a system message': [{ role: 'system', content: 'You are a miller.\n' }, user],
    'several turns': [
      { role: 'system', content: 'Be short.' },
      { role: 'user', content: 'The wheel turns'.repeat(400) },
      { role: 'assistant', content: 'It does.' },
      user,
    ],
  };
  for (const [name, messages] of Object.entries(conversations)) {
    it(`are those of the whole template: ${name}`, async () => {
      const counted = await counter.count(
        { kind: 'chat', body: { model: 'm', messages } },
        'llama3',
        1e6,
      );
      assert.equal(counted, countText(render(messages)));
    });
  }

  it('a text has its tokens and the beginning, token ids count as they are, and the longest prompt decides', async () => {
    const text = 'The wheel turns, and the mill grinds.';
    assert.equal(await countPrompt(text), countText(`<|begin_of_text|>${text}`));
    assert.equal(await countPrompt([1, 2, 3]), 3);
    assert.equal(await countPrompt([[1], [1, 2, 3, 4]]), 4);
    assert.equal(await countPrompt(['one', text]), await countPrompt(text));
  });

  it('a text that is encoded in slices has the tokens of the whole', async () => {
    const text = 'Many words make a long text, said the miller; 水 turns it.\n'.repeat(3000);
    const counted = await countPrompt(text);
    assert.equal(counted, countText(`<|begin_of_text|>${text}`));
  });

  it('counting ends soon after the limit', async () => {
    const text = 'word '.repeat(200_000);
    const counted = await countPrompt(text, 1000);
    assert(counted > 1000 && counted < 20_000, `${counted}`);
  });

  it('others are served while the vocabulary is loaded, and while a long text is counted', async () => {
    const fresh = createLlama3Counter();
    const task = (prompt: string): Task => ({ kind: 'completion', body: { model: 'm', prompt } });
    const before = process.threadCpuUsage();
    assert.equal(fresh.countText('not yet'), null);
    const order: string[] = [];
    const long = fresh.count(task('word '.repeat(400_000)), 'llama3', 1e9);
    const short = fresh.count(task('word'), 'llama3', 1e9);
    await Promise.all([long.then(() => order.push('long')), short.then(() => order.push('short'))]);
    const { user, system } = process.threadCpuUsage(before);
    assert.deepEqual(order, ['short', 'long']);
    // Both together take several times as long, but elsewhere.
    assert((user + system) / 1000 < 100, `${(user + system) / 1000} ms`);
    await fresh.close();
    await assert.rejects(fresh.count(task('word'), 'llama3', 1e9), /no longer counted/);
    assert.equal(fresh.countText('word'), null);
  });

  it('a count that is under way when it is closed fails', async () => {
    const fresh = createLlama3Counter();
    const task: Task = { kind: 'completion', body: { model: 'm', prompt: 'word' } };
    const counted = assert.rejects(fresh.count(task, 'llama3', 1e9), /has ended/);
    await fresh.close();
    await counted;
  });
});
