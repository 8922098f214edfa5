// Streams through the upstream engine's rewriter: whatever the network cuts, whichever server speaks, what
// arrives is what was sent, under our envelope and by our usage rule.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { EngineError, type Task } from '#inference/engine.ts';
import { EventRewriter } from '#inference/engines/upstream/stream/event-rewriter.ts';
import { EventTemplates } from '#inference/engines/upstream/stream/event-template.ts';
import { createTokenCounts } from '#inference/engines/upstream/usage.ts';
import type { ChatRequest } from '#inference/schema.ts';
import type { Usage } from '#inference/wire/response.ts';
import { newCall } from '#test/support/engine-call.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';
import { newTrust } from '#test/support/upstream.ts';

type Event = Record<string, unknown> & { choices: Record<string, unknown>[] };

const envelope = {
  requestId: 'ours',
  id: 'chat-ours',
  created: 7,
  model: 'ours/größe',
  kind: 'chat' as const,
};
const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 };

function chat(body: Partial<ChatRequest> = {}): Task {
  return { kind: 'chat', body: { model: 'm', messages: [], ...body } };
}

/**
 * Feeds bytes in pieces; returns the events, and the usage that was reported beside them. A second time they are
 * what the server is known for, which changes nothing.
 */
function rewrite(pieces: readonly Buffer[], task = chat(), counter?: (text: string) => number) {
  const templates = new EventTemplates();
  const first = rewriteOnce(pieces, task, counter, templates);
  const second = rewriteOnce(pieces, task, counter, templates);
  assert.deepEqual(second.events, first.events);
  assert.deepEqual(second.reported, first.reported);
  assert.equal(second.generated.soFar(), first.generated.soFar());
  assert.equal(second.rewriter.hasFinished(), first.rewriter.hasFinished());
  return first;
}

function rewriteOnce(
  pieces: readonly Buffer[],
  task: Task,
  counter: ((text: string) => number) | undefined,
  templates: EventTemplates,
) {
  const reported: Usage[] = [];
  const call = newCall({ envelope, onUsage: (soFar) => reported.push(soFar) });
  const generated = createTokenCounts(counter)();
  const rewriter = new EventRewriter(task, call, { generated, check: newTrust() }, templates);
  let out = pieces.map((piece) => rewriter.push(piece.toString('latin1'))).join('');
  out += rewriter.end();
  const failure = rewriter.failure;
  if (failure !== null) throw failure;
  const text = Buffer.from(out, 'latin1').toString('utf8');
  const events = text
    .split('\n\n')
    .slice(0, -1)
    .map((event) => JSON.parse(event.replace(/^data: /, '')) as Event);
  return { events, reported, rewriter, generated, text };
}

const role = 'assistant';
const choiceOf = (delta: object, finish: string | null = null) => ({
  index: 0,
  delta,
  logprobs: null,
  finish_reason: finish,
});

/** How different servers order what surrounds the choices. */
const styles: Record<string, (choices: object[], more?: object) => string> = {
  vllm: (choices, more) =>
    JSON.stringify({ id: 'up-1', object: 'x', created: 1, model: 'up', choices, ...more }),
  'llama-server': (choices, more) =>
    JSON.stringify({
      choices,
      created: 1,
      id: 'up-1',
      model: 'up',
      system_fingerprint: 'b6800',
      object: 'x',
      ...more,
    }),
  openai: (choices, more) =>
    JSON.stringify({
      id: 'up-1',
      object: 'x',
      created: 1,
      model: 'up',
      service_tier: 'default',
      system_fingerprint: 'fp_1',
      choices,
      usage: null,
      ...more,
    }),
  'with spaces': (choices, more) =>
    JSON.stringify({ id: 'up-1', model: 'up', choices, ...more }, null, 1).replaceAll(
      /\n\s*/g,
      ' ',
    ),
};

const toolCall = (text: string) => ({
  tool_calls: [{ index: 0, function: { arguments: text } }],
});
const delta = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }).map((content) => ({ content })),
  fc.string({ unit: 'grapheme', maxLength: 12 }).map((content) => ({ content })),
  fc
    .constantFrom(
      '"finish_reason":"stop"',
      '\n\ndata: [DONE]',
      ']}',
      '"choices":[{',
      '👩‍🔧',
      '\r\n',
    )
    .map((content) => ({ content })),
  fc.json({ maxDepth: 1 }).map(toolCall),
  fc.constant({ reasoning_content: 'Hm “…”' }),
);

describe('streams of an upstream', () => {
  test('are read in any chunking: text of any bytes, tool calls, every style and line end', () => {
    const everything = fc.record({
      style: fc.constantFrom(...Object.keys(styles)),
      deltas: fc.array(delta, { minLength: 1, maxLength: 12 }),
      lineEnd: fc.constantFrom('\n', '\r\n', '\r'),
      field: fc.constantFrom('data: ', 'data:'),
      note: fc.constantFrom('', ': note\n\n'),
      cuts: fc.array(fc.nat(4000), { maxLength: 40 }),
      includeUsage: fc.boolean(),
    });
    const property = fc.property(everything, (given) => {
      const write = styles[given.style] as (typeof styles)[string];
      const sent = [
        choiceOf({ role: 'assistant', content: '' }),
        // White space at the beginning would wait for what follows, because a thought may.
        choiceOf({ content: '.' }),
        ...given.deltas.map((one) => choiceOf(one)),
        choiceOf({}, 'stop'),
      ];
      const wire = [...sent.map((choice) => write([choice])), write([], { usage }), '[DONE]']
        .map((data) => `${given.note}${given.field}${data}\n\n`)
        .join('')
        .replaceAll('\n', given.lineEnd);
      const bytes = Buffer.from(wire);
      const cuts = [0, ...given.cuts.filter((cut) => cut < bytes.length), bytes.length];
      cuts.sort((a, b) => a - b);
      const pieces = cuts.slice(1).map((cut, index) => bytes.subarray(cuts[index], cut));
      const task = chat({ stream_options: { include_usage: given.includeUsage } });
      const { events, reported, rewriter } = rewrite(pieces, task);
      assert.deepEqual(
        events.flatMap(({ choices }) => choices),
        sent,
      );
      for (const { id, created, model, object, usage } of events) {
        const { requestId: _, ...shown } = envelope;
        const expected = { ...shown, object: 'chat.completion.chunk' };
        assert.deepEqual({ id, created, model, kind: 'chat', object }, expected);
        assert.equal(usage, given.includeUsage ? null : undefined);
      }
      assert.deepEqual(reported, [{ ...usage, prompt_tokens_details: null }]);
      assert.ok(rewriter.isDone && rewriter.hasFinished());
    });
    fc.assert(property, { seed: propertySeed, numRuns: propertyRuns(400) });
  });

  test('keep members that the server adds to its envelope', () => {
    for (const [style, expected] of [
      ['llama-server', { system_fingerprint: 'b6800' }],
      ['openai', { system_fingerprint: 'fp_1', service_tier: 'default' }],
      ['vllm', { system_fingerprint: null }],
    ] as const) {
      const write = styles[style] as (typeof styles)[string];
      const wire = ['a', 'b', 'c'].map((content) => `data: ${write([choiceOf({ content })])}\n\n`);
      const { events } = rewrite([Buffer.from(wire.join(''))]);
      for (const { id, object, created, model, choices, ...extras } of events)
        assert.deepEqual(extras, expected);
      assert.equal(events.length, 3);
    }
  });

  test('follow an envelope that changes during the stream', () => {
    const wire = [1, 1, 2, 2, 3].map(
      (created, index) =>
        `data: ${JSON.stringify({ choices: [choiceOf({ role, content: `${index}` })], created })}\n\n`,
    );
    const { events } = rewrite(wire.map((event) => Buffer.from(event)));
    assert.deepEqual(
      events.map(({ created, choices }) => [created, choices[0]]),
      [0, 1, 2, 3, 4].map((index) => [7, choiceOf({ role, content: `${index}` })]),
    );
  });

  test('remove usage from the events that carry it, and report it', () => {
    const write = styles.vllm as (typeof styles)[string];
    const wire = [1, 2, 3].map((tokens) => {
      const counts = { prompt_tokens: 3, completion_tokens: tokens, total_tokens: 3 + tokens };
      const choice = choiceOf({ content: 'x' }, tokens === 3 ? 'length' : null);
      return Buffer.from(`data: ${write([choice], { usage: counts })}\n\n`);
    });
    const plain = Buffer.from(`data: ${write([choiceOf({ role: 'assistant' })])}\n\n`);
    const { events, reported, rewriter } = rewrite([plain, ...wire]);
    assert.ok(events.every((event) => !('usage' in event)));
    assert.deepEqual(
      reported.map(({ completion_tokens }) => completion_tokens),
      [1, 2, 3],
    );
    assert.ok(rewriter.hasFinished());
    const asked = chat({ stream_options: { include_usage: true, continuous_usage_stats: true } });
    const shown = rewrite([plain, ...wire], asked).events.map((event) => event.usage as Usage);
    assert.deepEqual(
      shown.map((it) => it?.completion_tokens ?? null),
      [null, 1, 2, 3],
    );
  });

  test('end only when every choice that began has ended', () => {
    const write = styles.vllm as (typeof styles)[string];
    const parts = [0, 1].map((index) => write([{ ...choiceOf({ content: 'x' }), index }]));
    const ends = [0, 1].map((index) => write([{ ...choiceOf({}, 'stop'), index }]));
    const feed = (data: string[]) =>
      rewrite(
        data.map((one) => Buffer.from(`data: ${one}\n\n`)),
        chat({ n: 2 }),
      ).rewriter.hasFinished();
    assert.equal(feed([...parts, ends[0] as string]), false);
    assert.equal(feed([...parts, ...ends]), true);
    assert.equal(feed([]), false);
  });

  test('with fewer choices than requested may end, but not be cut off', () => {
    const write = styles.vllm as (typeof styles)[string];
    const wire = Buffer.from(`data: ${write([choiceOf({ content: 'x' }, 'stop')])}\n\n`);
    const prompts: Task = { kind: 'completion', body: { model: 'm', prompt: ['a', 'b'] } };
    for (const task of [chat({ n: 2 }), prompts]) {
      const { rewriter } = rewrite([wire], task);
      assert.deepEqual([rewriter.hasFinished(), rewriter.hasFinished(true)], [true, false]);
    }
    assert.equal(rewrite([wire]).rewriter.hasFinished(true), true);
  });

  test('may begin with a byte order mark', () => {
    const write = styles.vllm as (typeof styles)[string];
    const wire = ['a', 'b', 'c'].map((content) => `data: ${write([choiceOf({ content })])}\n\n`);
    const { events } = rewrite([Buffer.from(`\ufeff${wire.join('')}`)]);
    assert.deepEqual(
      events.map(({ choices }) => choices[0]?.delta),
      [{ role, content: 'a' }, { content: 'b' }, { content: 'c' }],
    );
  });

  test('open each choice with a role, whichever event is its first', () => {
    const write = styles.vllm as (typeof styles)[string];
    const event = (delta: object, index = 0) =>
      Buffer.from(`data: ${write([{ ...choiceOf(delta), index }])}\n\n`);
    const empty = event({ content: '' });
    const templates = new EventTemplates();
    const deltasOf = (pieces: Buffer[], body: Partial<ChatRequest> = {}) =>
      rewriteOnce(pieces, chat(body), undefined, templates).events.map(
        ({ choices }) => choices[0]?.delta,
      );
    // The empty event is known from the first stream, and opens the second.
    const [a, b] = [event({ content: 'a' }), event({ content: 'b' })];
    const [opened, said] = [{ role, content: '' }, [{ content: 'a' }, { content: 'b' }]];
    assert.deepEqual(deltasOf([event(opened), a, empty, b]), [
      opened,
      said[0],
      { content: '' },
      said[1],
    ]);
    for (let stream = 0; stream < 2; stream++)
      assert.deepEqual(deltasOf([empty, a, b]), [opened, ...said]);
    assert.deepEqual(deltasOf([event({ role: null, content: 'a' }), b]), [
      { role, content: 'a' },
      said[1],
    ]);
    // What may be the beginning of a tag is held back, but not the role.
    assert.deepEqual(deltasOf([event({ content: '<' }), b]), [opened, { content: '<b' }]);
    assert.deepEqual(deltasOf([a, event({ content: 'x' }, 1), b, event({}, 1)], { n: 2 }), [
      { role, content: 'a' },
      { role, content: 'x' },
      said[1],
      {},
    ]);
  });

  test('pass on what a server sends besides its choices, up to a bound', () => {
    const write = styles.vllm as (typeof styles)[string];
    const reported: Record<string, unknown>[] = [];
    const call = newCall({ envelope, onRest: (members) => reported.push(members) });
    const counting = { generated: createTokenCounts(undefined)(), check: newTrust() };
    const rewriter = new EventRewriter(chat(), call, counting, new EventTemplates());
    const say = (more: object) => rewriter.push(`data: ${write([], more)}\n\n`);
    say({ usage, timings: { predicted_ms: 4 } });
    for (let at = 0; at < 20; at++) say({ filler: 'x'.repeat(1000) });
    assert.deepEqual(reported[0], { timings: { predicted_ms: 4 } });
    assert(reported.length > 10 && reported.length < 20);
  });

  test('hold data of several lines, names of events, and a last event without its blank line', () => {
    const pretty = JSON.stringify({ choices: [choiceOf({ content: 'ü' }, 'stop')] }, null, 2);
    const lines = pretty.split('\n').map((line) => `data: ${line}`);
    const wire = `event: message\nid: 4\n${lines.join('\n')}\n\nretry: 5\n\ndata: [DONE]`;
    for (const lineEnd of ['\n', '\r\n', '\r']) {
      const bytes = Buffer.from(wire.replaceAll('\n', lineEnd));
      const singly = Array.from(bytes, (_, at) => bytes.subarray(at, at + 1));
      for (const pieces of [[bytes], singly]) {
        const { events, rewriter } = rewrite(pieces);
        assert.deepEqual(events[0]?.choices, [choiceOf({ role, content: 'ü' }, 'stop')]);
        assert.equal(events.length, 1);
        assert.ok(rewriter.isDone);
      }
    }
  });

  test('throw the error that a server reports, in either of its forms', () => {
    const overflow =
      '{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}';
    for (const field of ['data', 'error'])
      assert.throws(() => rewrite([Buffer.from(`${field}: ${overflow}\n\n`)]), {
        failure: 'rejected',
        code: 'context_length_exceeded',
        param: 'messages',
        message: /4096 tokens.*9000 and/,
      });
    assert.throws(() => rewrite([Buffer.from('data: {"choices":[{"ind\n\n')]), {
      failure: 'unavailable',
    });
  });

  test('count what was generated before they broke off, by the counter or one token per event', async () => {
    const write = styles.vllm as (typeof styles)[string];
    const words = Array.from({ length: 100 }, (_, index) => `wörd${index} `);
    const wire = [
      write([choiceOf({ role: 'assistant', content: '' })]),
      ...words.map((content) => write([choiceOf({ content })])),
      write([choiceOf(toolCall('{"a": 1}'))]),
    ].map((data) => Buffer.from(`data: ${data}\n\n`));
    const byWord = (text: string) => text.match(/\S+/g)?.length ?? 0;
    assert.equal(await rewrite(wire).generated.total(false), 101);
    assert.equal(await rewrite(wire, chat(), byWord).generated.total(false), 102);
  });

  test('are corrected where servers omit members', async () => {
    const write = styles.vllm as (typeof styles)[string];
    const careless = (choice: object | null) =>
      `data: ${write(choice === null ? [] : [choice])}\n\n`;
    const wire = [
      careless(null),
      'data:    \n\n',
      careless({ index: 0, finish_reason: '' }),
      careless({ delta: { content: 'a' }, finish_reason: '' }),
      careless({ index: 0, delta: { content: 'b' }, finish_reason: null }),
      careless({ index: 0, delta: { content: 'c' }, finish_reason: null }),
    ];
    const end = careless({ index: 0, delta: null, finish_reason: 'stop' });
    const twice = Buffer.from([...wire, end, end, careless({ delta: { content: '' } })].join(''));
    const { events, generated } = rewrite([twice]);
    assert.deepEqual(
      events.flatMap(({ choices }) => choices),
      [
        { index: 0, delta: { role, content: '' }, finish_reason: null, logprobs: null },
        { index: 0, delta: { content: 'a' }, finish_reason: null, logprobs: null },
        { index: 0, delta: { content: 'b' }, finish_reason: null, logprobs: null },
        { index: 0, delta: { content: 'c' }, finish_reason: null, logprobs: null },
        { index: 0, delta: {}, finish_reason: 'stop', logprobs: null },
      ],
    );
    assert.equal(await generated.total(false), 3);
    assert(!rewrite([Buffer.from(wire.join(''))]).rewriter.hasFinished());
  });

  test('of vLLM, whose first event differs from the others, are learned once', () => {
    const event = (choice: string, more = '') =>
      Buffer.from(
        `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":17,"model":"tiny","choices":[{"index":0,${choice}}]${more}}\n\n`,
      );
    const says = (word: string) =>
      event(`"delta":{"content":"${word}"},"logprobs":null,"finish_reason":null,"token_ids":null`);
    const first = event(
      '"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null',
      ',"prompt_token_ids":null,"prompt_text":null',
    );
    const last = event(
      '"delta":{"content":"!"},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null',
    );
    const templates = new EventTemplates();
    const stream = () => {
      const { text } = rewriteOnce(
        [first, says('a'), says('b'), last],
        chat(),
        undefined,
        templates,
      );
      return { text, template: templates.get('chat', false) };
    };
    const { text, template } = stream();
    assert.equal(text.match(/data: /g)?.length, 4);
    assert.deepEqual(
      [stream(), stream()],
      [
        { text, template },
        { text, template },
      ],
    );
    assert.equal(templates.get('chat', false), template, 'nothing was learned anew');
    assert.equal(template?.known.size, 2, 'the first event and the last are known');
  });

  test('that a server breaks off are failures, whatever finish reason it gives', () => {
    const write = styles.vllm as (typeof styles)[string];
    for (const reason of ['abort', 'error']) {
      const wire = [choiceOf({ content: 'a' }), { ...choiceOf({}), finish_reason: reason }];
      const pieces = wire.map((choice) => Buffer.from(`data: ${write([choice])}\n\n`));
      assert.throws(() => rewrite(pieces), { failure: 'unavailable' });
    }
  });

  test('open a tool call with arguments, even if the server sends only its name', () => {
    const write = styles.vllm as (typeof styles)[string];
    const call = (more: object) => choiceOf({ tool_calls: [{ index: 0, ...more }] });
    const wire = [
      choiceOf({ role: 'assistant', content: '' }),
      choiceOf({ content: 'Hm.' }),
      call({ id: 'c1', type: 'function', function: { name: 'f' } }),
      call({ function: { arguments: '{}' } }),
    ];
    const tools = [{ type: 'function' as const, function: { name: 'f' } }];
    const bytes = Buffer.from(wire.map((choice) => `data: ${write([choice])}\n\n`).join(''));
    const { events } = rewrite([bytes], chat({ tools }));
    const calls = events.map(
      ({ choices: [choice] }) => (choice?.delta as Event | undefined)?.tool_calls,
    );
    assert.deepEqual(calls.slice(2), [
      [{ index: 0, id: 'c1', type: 'function', function: { name: 'f', arguments: '' } }],
      [{ index: 0, function: { arguments: '{}' } }],
    ]);
  });

  test('of several choices add up the counts that llama-server reports per choice', () => {
    const write = styles['llama-server'] as (typeof styles)[string];
    const wire = [
      'null',
      write([{ ...choiceOf({ content: 'a' }), index: 0 }]),
      write([{ ...choiceOf({ content: 'b' }), index: 1 }]),
      ...[0, 1].map((index) => write([{ ...choiceOf({}, 'stop'), index }])),
      write([], { usage: { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 } }),
      write([], { usage: { prompt_tokens: 3, completion_tokens: 7, total_tokens: 10 } }),
    ].map((data) => Buffer.from(`data: ${data}\n\n`));
    const { reported, events } = rewrite(wire, chat({ n: 2 }));
    const { prompt_tokens, completion_tokens, total_tokens } = reported.at(-1) as Usage;
    assert.deepEqual([prompt_tokens, completion_tokens, total_tokens], [3, 12, 15]);
    assert.equal(events.length, 4);

    const counts = (tokens: number) => ({
      usage: { prompt_tokens: 3, completion_tokens: tokens, total_tokens: 3 + tokens },
    });
    const ending = [5, 7].map((tokens, index) =>
      Buffer.from(`data: ${write([{ ...choiceOf({}, 'stop'), index }], counts(tokens))}\n\n`),
    );
    const totals = (pieces: Buffer[]) =>
      rewrite(pieces, chat({ n: 2 })).reported.map((usage) => usage.completion_tokens);
    const inAll = Buffer.from(`data: ${write([], counts(12))}\n\n`);
    assert.deepEqual(totals([...ending, inAll]).slice(-2), [12, 12], 'the sum is not added');
  });

  test('are counted here if a server reports only zeros', async () => {
    const zeros = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
    const write = styles.vllm as (typeof styles)[string];
    const wire = ['a', 'b', 'c'].map((content) =>
      Buffer.from(`data: ${write([choiceOf({ content })], { usage: zeros })}\n\n`),
    );
    const { reported, generated } = rewrite(wire);
    assert.deepEqual([reported, await generated.total(false)], [[], 3]);
  });

  test('of llama-server get the members that it omits, parsed or not', () => {
    const write = styles['llama-server'] as (typeof styles)[string];
    const feed = (task: Task, choices: object[]) =>
      rewrite(
        choices.map((choice) => Buffer.from(`data: ${write([choice])}\n\n`)),
        task,
      ).events.flatMap((event) => event.choices);
    const delta = (said: object) => ({ finish_reason: null, index: 0, delta: said });
    const opening = delta({ role: 'assistant', content: null });
    const chats = feed(chat(), [opening, ...['a', 'b', 'c'].map((content) => delta({ content }))]);
    assert.deepEqual(chats[0]?.delta, { role: 'assistant', content: '' });
    assert(chats.every(({ logprobs }) => logprobs === null));

    const text = (said: string) => ({ text: said, index: 0, finish_reason: null });
    const body = { model: 'm', prompt: 'x' };
    const texts = feed({ kind: 'completion', body }, ['a', 'b', 'c'].map(text));
    assert(texts.every((choice) => choice.logprobs === null && choice.stop_reason === null));

    const score = (token: string) => ({
      content: [{ token, logprob: -1, bytes: [], top_logprobs: [{ token, logprob: -1 }] }],
    });
    const scored = ['👩', 'b'].map((said) => ({ ...text(said), logprobs: score(said) }));
    const scores = feed({ kind: 'completion', body: { ...body, logprobs: 1 } }, scored);
    assert.deepEqual(
      scores.map(({ logprobs }) => logprobs),
      [
        {
          tokens: ['👩'],
          token_logprobs: [-1],
          top_logprobs: [{ '👩': -1 }],
          text_offset: [0],
        },
        { tokens: ['b'], token_logprobs: [-1], top_logprobs: [{ b: -1 }], text_offset: [1] },
      ],
    );

    // As SGLang writes them.
    const placeless = ['👩 a', 'bc'].map((said) => ({
      ...text(said),
      logprobs: { tokens: [...said], token_logprobs: [], top_logprobs: [], text_offset: [-1, -1] },
    }));
    const placed = feed({ kind: 'completion', body: { ...body, logprobs: 1 } }, placeless);
    assert.deepEqual(
      placed.map(({ logprobs }) => (logprobs as { text_offset: number[] }).text_offset),
      [
        [0, 1, 2],
        [3, 4],
      ],
    );
  });

  test('pass on other members of a server’s usage', () => {
    const details = { cached_tokens: 1, created_cache_tokens: 2 };
    const more = {
      ...usage,
      completion_tokens_details: { reasoning_tokens: 2 },
      prompt_tokens_details: details,
    };
    const write = styles.vllm as (typeof styles)[string];
    const { reported } = rewrite([Buffer.from(`data: ${write([], { usage: more })}\n\n`)]);
    assert.deepEqual(reported, [more]);
  });

  test('of invalid data end in an engine error or without events', async () => {
    const scored: Task = { kind: 'completion', body: { model: 'm', prompt: 'a', logprobs: 1 } };
    const score = fc.constantFrom('null', '5', '{"token":null}', '{"token":"a","top_logprobs":3}');
    const scores = fc.oneof(
      score.map((one) => `{"content":[${one}]}`),
      score.map((one) => `{"tokens":[${one}],"text_offset":[-1]}`),
      score.map((one) => `{"tokens":["a"],"text_offset":${one}}`),
    );
    const part = fc.oneof(
      fc.constantFrom('data: ', '\n\n', '\n', '\r', '{"choices":[{', '}]}', '[DONE]', '"usage":{'),
      fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.stringify(value)),
      fc
        .tuple(fc.jsonValue({ maxDepth: 2 }), fc.jsonValue({ maxDepth: 2 }))
        .map(
          ([choice, delta]) =>
            `data: {"choices":[${JSON.stringify(choice)},{"delta":${JSON.stringify(delta)}}]}\n\n`,
        ),
      fc.uint8Array({ maxLength: 8 }).map((bytes) => Buffer.from(bytes).toString('latin1')),
      scores.map((logprobs) => `data: {"choices":[{"text":"a","logprobs":${logprobs}}]}\n\n`),
    );
    const task = fc.constantFrom(chat(), scored);
    const property = fc.asyncProperty(
      task,
      fc.array(part, { maxLength: 20 }),
      async (task, parts) => {
        const generated = createTokenCounts((text) => text.length)();
        const counting = { generated, check: newTrust() };
        const rewriter = new EventRewriter(
          task,
          newCall({ envelope }),
          counting,
          new EventTemplates(),
        );
        for (const bytes of parts) rewriter.push(Buffer.from(bytes).toString('latin1'));
        rewriter.end();
        assert.ok((await generated.total(false)) >= 0);
        assert.ok(rewriter.failure === null || rewriter.failure instanceof EngineError);
      },
    );
    await fc.assert(property, { seed: propertySeed, numRuns: propertyRuns(1000) });
  });

  test('refuse an event over the maximum size', () => {
    const pieces = Array.from({ length: 20 }, () => Buffer.alloc(64 * 1024, 'x'));
    assert.throws(() => rewrite([Buffer.from('data: "'), ...pieces]), /too large/);
  });
});
