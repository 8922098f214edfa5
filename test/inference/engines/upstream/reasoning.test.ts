// What models think, from servers that name it differently or write it as text: it always arrives as
// `reasoning_content`, and never as part of the answer.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { Task } from '#inference/engine.ts';
import { readResponse } from '#inference/engines/upstream/plain/parse-response.ts';
import { EventRewriter } from '#inference/engines/upstream/stream/event-rewriter.ts';
import { EventTemplates } from '#inference/engines/upstream/stream/event-template.ts';
import { createTokenCounts, toUsage } from '#inference/engines/upstream/usage.ts';
import { splitThought, type ThinkTags } from '#inference/think-tags.ts';
import { chunksOf } from '#inference/wire/envelope.ts';
import { foldChunks } from '#inference/wire/fold.ts';
import { newCall } from '#test/support/engine-call.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';
import { newTrust } from '#test/support/upstream.ts';

type Delta = Record<string, unknown>;

const chat = (thinkTags?: ThinkTags): Task => ({
  kind: 'chat',
  body: { model: 'm', messages: [] },
  thinkTags,
});

/** What a client makes of a stream with these deltas. A second stream finds what the first one taught. */
function say(deltas: readonly Delta[], thinkTags?: ThinkTags, space = '') {
  const templates = new EventTemplates();
  const first = sayOnce(deltas, thinkTags, space, templates);
  assert.deepEqual(sayOnce(deltas, thinkTags, space, templates), first);
  return first;
}

function sayOnce(
  deltas: readonly Delta[],
  thinkTags: ThinkTags | undefined,
  space: string,
  templates: EventTemplates,
) {
  const call = newCall({
    envelope: { requestId: '1', id: 'chat-1', created: 7, model: 'ours', kind: 'chat' },
  });
  const counting = { generated: createTokenCounts(undefined)(), check: newTrust() };
  const rewriter = new EventRewriter(chat(thinkTags), call, counting, templates);
  const write = (delta: Delta, finish: string | null) => {
    const choice = { index: 0, delta, logprobs: null, finish_reason: finish };
    const json = JSON.stringify({ id: 'up', created: 1, model: 'up', choices: [choice] });
    const spaced = json.replaceAll('":', `":${space}`);
    return Buffer.from(`data: ${spaced}\n\n`).toString('latin1');
  };
  const events = [...deltas.map((delta) => write(delta, null)), write({}, 'stop')];
  const out = events.map((event) => rewriter.push(event)).join('') + rewriter.end();
  if (rewriter.failure !== null) throw rewriter.failure;
  const chunks = chunksOf(out);
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const counted = { choices: [], usage: { ...usage, prompt_tokens_details: null } };
  const [choice] = foldChunks('chat', [...chunks, counted]).choices;
  assert(choice !== undefined && 'message' in choice);
  assert(!JSON.stringify(chunks).includes('"reasoning":"'));
  const { reasoning_content: reasoning, content } = choice.message;
  return { reasoning, content };
}

const texts = (...pieces: string[]) => pieces.map((content) => ({ content }));
const role = { role: 'assistant', content: '' };

describe('a stream', () => {
  const thought = { reasoning: 'Two and two', content: 'Four.' };

  test('of a server that names its thoughts either way says the same', () => {
    const named = (name: string) => [{ [name]: 'Two' }, { [name]: ' and two' }];
    for (const space of ['', ' ']) {
      for (const name of ['reasoning', 'reasoning_content'])
        assert.deepEqual(
          say([role, ...named(name), ...texts('Four', '.')], 'split', space),
          thought,
        );
    }
    const both = [{ reasoning: 'Two and two', reasoning_content: 'Two and two' }];
    assert.deepEqual(say([role, ...both, ...texts('Four.')]), thought);
    const inOne = [{ reasoning: 'Two' }, { reasoning: ' and two', content: 'Four' }];
    assert.deepEqual(say([role, ...inOne, ...texts('.')]), thought);
    const first = [{ role: 'assistant', content: '', reasoning: 'Two and two' }];
    assert.deepEqual(say([...first, ...texts('Four.')]), thought);
    const null_ = [
      { reasoning: null, content: 'Four' },
      { reasoning: null, content: '.' },
    ];
    assert.deepEqual(say([role, ...null_]), { reasoning: undefined, content: 'Four.' });
  });

  test('that thinks again after it has answered keeps both apart', () => {
    const again = [{ reasoning: 'a' }, { content: 'b' }, { reasoning: 'c' }, { content: 'd' }];
    assert.deepEqual(say([role, ...again]), { reasoning: 'ac', content: 'bd' });
  });

  test('with think tags is split, wherever the tags are cut', () => {
    const pieces = ['', ' \n', '<think>', '\nTwo and two\n', '</think>', '\n\n', 'Four.'].join('');
    fc.assert(
      fc.property(fc.array(fc.nat(pieces.length)), (cuts) => {
        const at = [0, ...cuts.toSorted((a, b) => a - b), pieces.length];
        const cut = at.slice(1).map((end, index) => pieces.slice(at[index], end));
        assert.deepEqual(say([role, ...texts(...cut)]), thought);
        assert.deepEqual(say(texts(...cut)), thought);
        const opened = texts(...cut.join('').replace('<think>', '').split(/(?=t)/));
        assert.deepEqual(say([role, ...opened], 'opened'), thought);
      }),
      { seed: propertySeed, numRuns: propertyRuns(300) },
    );
  });

  test('with any text has exactly this text, however it is cut', () => {
    const piece = fc.constantFrom('<', 'think', '>', '</think>', ' ', '\n', '<think>', 'ü', '"');
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const whole = pieces.join('');
        const { reasoning, content } = splitThought(whole, 'split');
        const expected = { reasoning: reasoning === '' ? undefined : reasoning, content };
        assert.deepEqual(say([role, ...texts(...pieces)]), expected);
        if (!whole.trimStart().startsWith('<think>')) assert.equal(content, whole);
        assert.equal(say([role, ...texts(...pieces)], 'keep').content, whole);
      }),
      { seed: propertySeed, numRuns: propertyRuns(300) },
    );
  });

  test('that mentions a tag later is not touched', () => {
    const content = 'Write <think>a</think> before it.';
    assert.deepEqual(say([role, ...texts(content)]), { reasoning: undefined, content });
    assert.deepEqual(say([role, ...texts('\\u003cthink> is', ' a tag')]), {
      reasoning: undefined,
      content: '\\u003cthink> is a tag',
    });
  });

  test('of a thought that never ends has no answer, and half a tag is text', () => {
    assert.deepEqual(say(texts('<think>', 'Two</thi')), { reasoning: 'Two</thi', content: '' });
    assert.deepEqual(say(texts('<thi')), { reasoning: undefined, content: '<thi' });
    assert.deepEqual(say(texts('<think>\n\n</think>\n\nHi')), {
      reasoning: undefined,
      content: 'Hi',
    });
  });

  test('that calls a tool after a thought ends the thought', () => {
    const calls = [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '' } }];
    const said = say([role, ...texts('<think>', 'Look'), { tool_calls: calls }]);
    assert.deepEqual(said, { reasoning: 'Look', content: null });
  });
});

test('a server that escapes its tags is understood', () => {
  const templates = new EventTemplates();
  const counting = { generated: createTokenCounts(undefined)(), check: newTrust() };
  const rewriter = new EventRewriter(chat(), newCall(), counting, templates);
  const write = (content: string, finish: string) =>
    `data: {"choices":[{"index":0,"delta":{"content":"${content}"},"finish_reason":${finish}}]}\n\n`;
  const sent = [write('\\u003cthink\\u003ea\\u003c/think\\u003e', 'null'), write('b', '"stop"')];
  const [first, second] = chunksOf(sent.map((event) => rewriter.push(event)).join(''));
  assert.deepEqual(first?.choices[0], {
    index: 0,
    delta: { role: 'assistant', content: '', reasoning_content: 'a' },
    finish_reason: null,
    logprobs: null,
  });
  assert.deepEqual(second?.choices[0], {
    index: 0,
    delta: { content: 'b' },
    finish_reason: 'stop',
    logprobs: null,
  });
});

test('a whole response says the same in each form', () => {
  const read = (message: Delta, thinkTags?: ThinkTags) => {
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    const result = readResponse(
      { kind: 'chat', body: {}, thinkTags },
      JSON.stringify({ choices }),
      '',
    );
    assert('response' in result);
    const [choice] = result.response.choices;
    assert(choice !== undefined && 'message' in choice);
    return [choice.message.reasoning_content, choice.message.content];
  };
  const expected = ['Two', 'Four.'];
  assert.deepEqual(read({ content: 'Four.', reasoning: 'Two' }), expected);
  assert.deepEqual(read({ content: 'Four.', reasoning_content: 'Two' }), expected);
  assert.deepEqual(read({ content: '<think>\nTwo\n</think>\n\nFour.' }), expected);
  assert.deepEqual(read({ content: 'Two</think>Four.' }, 'opened'), expected);
  const text = '<think>Two</think>Four.';
  assert.deepEqual(read({ content: text }, 'keep'), [undefined, text]);
  assert.deepEqual(read({ content: 'a <think>', reasoning_content: null }), [
    undefined,
    'a <think>',
  ]);
});

test('reasoning tokens are reported in one place, and only if they can be true', () => {
  const counts = { prompt_tokens: 1, completion_tokens: 5, total_tokens: 6 };
  const reasoningOf = (more: object) => toUsage({ ...counts, ...more })?.completion_tokens_details;
  assert.deepEqual(reasoningOf({ reasoning_tokens: 3 }), { reasoning_tokens: 3 });
  const details = { completion_tokens_details: { reasoning_tokens: 3, audio_tokens: 1 } };
  assert.deepEqual(reasoningOf(details), details.completion_tokens_details);
  for (const wrong of [6, -1, 'x', 1.5])
    assert.deepEqual(reasoningOf({ completion_tokens_details: { reasoning_tokens: wrong } }), {
      reasoning_tokens: 0,
    });
  assert.equal(reasoningOf({}), undefined);
});
