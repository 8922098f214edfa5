// How a response is continued on another backend: which requests can be, the request to the next backend, and how the
// two parts are joined.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { memberTexts } from '#http/body/json.ts';
import type { Task } from '#inference/engine.ts';
import { toRequestBody } from '#inference/engines/upstream/request-body.ts';
import { createCatalog } from '#inference/models/catalog.ts';
import type { ChatRequest, CompletionRequest } from '#inference/schema.ts';
import {
  addUsage,
  afterSeam,
  canContinue,
  Transcript,
  toContinuation,
} from '#inference/serving/continuation.ts';
import { parseEvents, toWireEvents } from '#inference/wire/envelope.ts';
import type { EngineChunk, WireEvents } from '#inference/wire/response.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';

const hello = { role: 'user', content: 'Hello' } as const;
const chat = (body: Partial<ChatRequest> = {}): Task => ({
  kind: 'chat',
  body: { model: 'm', messages: [hello], ...body },
});
const completion = (body: Partial<CompletionRequest> = {}): Task => ({
  kind: 'completion',
  body: { model: 'm', prompt: 'Once', ...body },
});
const found = createCatalog().find('hermes3-8b');
assert(found !== undefined);
const entry = found;

function bodyOf(next: ReturnType<typeof toContinuation>): Record<string, unknown> {
  assert(next !== null && next !== 'complete');
  return next.task.body;
}

test('the JSON that a large body came with is not sent instead of the continuation', () => {
  const messages = [hello];
  const body = { messages, [memberTexts]: new Map([[messages, Buffer.from('[]')]]) };
  const next = toContinuation(chat(body), 'So far', 3);
  assert(next !== null && next !== 'complete');
  const sent = toRequestBody(next.task, { model: 'm', server: 'vllm', url: 'http://a/v1' }, true);
  assert.match(String(sent), /"So far"/);
});

describe('which responses can be continued', () => {
  const tools = [{ type: 'function', function: { name: 'f' } }] as const;
  const cases: [string, Task, boolean][] = [
    ['text', chat(), true],
    [
      'text of tools that may not be called',
      chat({ tools: [...tools], tool_choice: 'none' }),
      true,
    ],
    ['a chat with tools', chat({ tools: [...tools] }), false],
    ['JSON', chat({ response_format: { type: 'json_object' } }), false],
    ['plain text by name', chat({ response_format: { type: 'text' } }), true],
    ['a form of vLLM’s', chat({ guided_json: {} } as object), false],
    ['several choices', chat({ n: 2 }), false],
    ['scores', chat({ logprobs: true }), false],
    ['counts in each event', chat({ stream_options: { continuous_usage_stats: true } }), false],
    ['a prompt as text', completion(), true],
    ['a prompt as tokens', completion({ prompt: [1, 2] }), false],
    ['several prompts', completion({ prompt: ['a', 'b'] }), false],
    ['a middle to fill in', completion({ suffix: 'end' }), false],
  ];
  for (const [what, task, can] of cases) {
    test(`${what}: ${can ? 'yes' : 'no'}`, () => assert.equal(canContinue(entry, task), can));
  }

  test('none if the model has it disabled', () => {
    assert.equal(canContinue({ ...entry, continueStreams: false }, chat()), false);
  });
});

describe('the request to the next backend', () => {
  test('a chat gets the text so far as the message to continue', () => {
    const { messages, ...rest } = bodyOf(toContinuation(chat({ temperature: 0 }), 'Hi the', 2));
    assert.deepEqual(messages, [hello, { role: 'assistant', content: 'Hi the' }]);
    assert.deepEqual(rest, {
      model: 'm',
      temperature: 0,
      continue_final_message: true,
      add_generation_prompt: false,
    });
  });

  test('one that already is a continuation continues the same message', () => {
    const begun = (content: ChatRequest['messages'][0]['content']) =>
      chat({ messages: [hello, { role: 'assistant', content }], continue_final_message: true });
    const contentOf = (task: Task) =>
      (bodyOf(toContinuation(task, ' there', 1)).messages as ChatRequest['messages'])[1]?.content;
    assert.equal(contentOf(begun('Hi')), 'Hi there');
    const part = { type: 'text', text: 'Hi' };
    assert.deepEqual(contentOf(begun([part])), [part, { type: 'text', text: ' there' }]);
  });

  test('limits are reduced by what was generated; with nothing left it is complete', () => {
    const limits = { max_tokens: 10, max_completion_tokens: 8, min_tokens: 3 };
    const body = bodyOf(toContinuation(chat(limits), 'Hi', 5));
    assert.deepEqual([body.max_tokens, body.max_completion_tokens, body.min_tokens], [3, 3, 0]);
    // The newer word wins, also where the older one says less.
    const older = bodyOf(
      toContinuation(chat({ max_tokens: 2, max_completion_tokens: 8 }), 'Hi', 5),
    );
    assert.deepEqual([older.max_tokens, older.max_completion_tokens], [3, 3]);
    assert.equal(toContinuation(chat(limits), 'Hi', 8), 'complete');
  });

  test('a completion gets prompt and text, whether or not the prompt was echoed', () => {
    assert.equal(bodyOf(toContinuation(completion(), ' upon', 1)).prompt, 'Once upon');
    const echoed = bodyOf(toContinuation(completion({ echo: true }), 'Once upon', 1));
    assert.deepEqual([echoed.prompt, echoed.echo], ['Once upon', false]);
    assert.equal(toContinuation(completion({ echo: true }), 'On', 0), null);
  });

  test('a space at the end is left to the next backend, which writes it with the next word', () => {
    const next = toContinuation(chat(), 'if (a)\n  ', 4);
    assert.deepEqual((bodyOf(next).messages as ChatRequest['messages'])[1], {
      role: 'assistant',
      content: 'if (a)\n',
    });
    assert(next !== null && next !== 'complete' && next.blanks === '\n  ');
    assert.equal(bodyOf(toContinuation(completion(), ' upon ', 1)).prompt, 'Once upon');
    const echoed = completion({ prompt: 'Once ', echo: true });
    const begun = toContinuation(echoed, 'Once  ', 1);
    assert.equal(bodyOf(begun).prompt, 'Once ', 'those of the prompt stay');
    assert(begun !== null && begun !== 'complete' && begun.blanks === ' ');
  });

  test('before any text the request is repeated', () => {
    const task = chat({ stop: 'x' });
    assert.deepEqual(toContinuation(task, '', 0), { task, blanks: '' });
    assert.deepEqual(toContinuation(task, ' \n', 1), { task, blanks: ' \n' });
  });

  test('text that ends like the start of a stop string is not continued', () => {
    const task = chat({ stop: ['###', 'END'] });
    assert.equal(toContinuation(task, 'The story #', 3), null);
    assert.equal(toContinuation(task, 'The story EN', 3), null);
    assert.notEqual(toContinuation(task, 'The story E ', 3), null);
  });
});

describe('what was sent', () => {
  const event = (content: string, more: object = {}): WireEvents =>
    toWireEvents({
      id: 'x',
      choices: [{ index: 0, delta: { content, ...more }, logprobs: null, finish_reason: null }],
    });

  test('is read from events and chunks alike, any character, however much there is', () => {
    const transcript = new Transcript('chat');
    let text = '';
    for (let at = 0; at < 2000; at++) {
      transcript.add(event(`${at} 水👩‍🔧`) + event('ü', { role: 'assistant', tool_calls: [] }));
      text += `${at} 水👩‍🔧ü`;
    }
    transcript.add({
      choices: [{ index: 0, delta: { content: '!' }, logprobs: null, finish_reason: null }],
      usage: null,
    });
    assert(transcript.read()?.text === `${text}!`);
  });

  test('keeps its order when events and chunks follow each other', () => {
    const transcript = new Transcript('chat');
    const chunk: EngineChunk = {
      choices: [{ index: 0, delta: { content: 'b' }, logprobs: null, finish_reason: 'stop' }],
      usage: null,
    };
    transcript.add(event('a'));
    transcript.add(chunk);
    transcript.add(event('c'));
    assert.deepEqual(transcript.read(), { text: 'abc', isFinished: true });
  });

  test('keeps its order whether events come one by one or many at once', () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 120 });
    const property = fc.property(sizes, (counts) => {
      const transcript = new Transcript('chat');
      let text = '';
      for (const [at, count] of counts.entries()) {
        // Few are large.
        const words = Array.from(
          { length: count > 30 ? count : 1 },
          (_, word) => `${at}.${word}é `,
        );
        transcript.add(words.map((word) => event(word)).join(''));
        text += words.join('');
      }
      assert.deepEqual(transcript.read(), { text, isFinished: false });
    });
    fc.assert(property, { seed: propertySeed, numRuns: propertyRuns(200) });
  });

  test('can’t be continued if it holds reasoning or tool calls, or is too long', () => {
    const parts = [{ type: 'text', text: 'a' }];
    for (const more of [
      { reasoning_content: 'hm' },
      { tool_calls: [{ index: 0 }] },
      { content: parts },
    ]) {
      const transcript = new Transcript('chat');
      transcript.add(event('a', more));
      assert.equal(transcript.read(), null);
    }
    const endless = new Transcript('chat');
    for (let at = 0; at < 12; at++) endless.add(event('x'.repeat(100_000)));
    assert.equal(endless.read(), null);
  });

  test('the next stream is joined without its opening', async () => {
    async function* next(): AsyncGenerator<EngineChunk | WireEvents> {
      yield event('', { role: 'assistant' }) + event('Hi', { role: 'assistant' }) + event(' you');
      yield event(' all');
    }
    const seen = [];
    for await (const item of afterSeam(next(), '')) seen.push(...parseEvents(item as string));
    const deltas = seen.flatMap(({ choices = [] }) =>
      choices.map((it) => 'delta' in it && it.delta),
    );
    assert.deepEqual(deltas, [{ content: 'Hi' }, { content: ' you' }, { content: ' all' }]);
  });

  test('spaces that the client has are not sent again, however they are split', async () => {
    const cases: [blanks: string, words: string[], joined: string][] = [
      ['\n', ['\n2. Banana'], '2. Banana'],
      ['\n\n', ['\n', '\n', '2.', '\n'], '2.\n'],
      [' ', [' Orange'], 'Orange'],
      [' ', ['Orange', ' juice'], 'Orange juice'],
      ['\n', ['\n\nNow'], '\nNow'],
      ['\n\n', ['\n', 'Now'], 'Now'],
      ['\n', ['2. Banana'], '2. Banana'],
      ['\n  ', ['  return'], 'return'],
      ['\n  ', ['\n ', ' return'], 'return'],
      [' ', [' '], ''],
    ];
    for (const [blanks, words, joined] of cases) {
      async function* next(): AsyncGenerator<EngineChunk | WireEvents> {
        yield event('', { role: 'assistant' });
        for (const word of words) yield event(word);
        yield { choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }], usage };
      }
      const usage = null;
      let text = '';
      let ends = 0;
      for await (const item of afterSeam(next(), blanks)) {
        const events = typeof item === 'string' ? parseEvents(item) : [item];
        for (const choice of events.flatMap(({ choices = [] }) => choices)) {
          text += 'delta' in choice ? (choice.delta.content ?? '') : '';
          if (choice.finish_reason != null) ends++;
        }
      }
      assert.deepEqual([text, ends], [joined, 1], JSON.stringify([blanks, words]));
    }
  });

  test('usage counts the prompt once and everything that was generated', () => {
    const counts = (prompt_tokens: number, completion_tokens: number) => ({
      prompt_tokens,
      completion_tokens,
      total_tokens: prompt_tokens + completion_tokens,
      prompt_tokens_details: null,
    });
    assert.deepEqual(addUsage(counts(10, 4), counts(14, 6)), counts(10, 10));
    assert.deepEqual(addUsage(counts(0, 4), counts(14, 6)), counts(10, 10));
    assert.deepEqual(addUsage(null, counts(14, 6)), counts(14, 6));
  });
});
