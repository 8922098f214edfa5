// The pieces of the local engine that decide without a model.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { EngineError } from '#inference/engine.ts';
import { toThreadCount } from '#inference/engines/local/child/open-model.ts';
import { toSeed } from '#inference/engines/local/child/output/sampling.ts';
import { createTextStream, findStop } from '#inference/engines/local/child/output/stop-strings.ts';
import { createToolCallStream } from '#inference/engines/local/child/output/tool-calls.ts';
import { createChatTemplate } from '#inference/engines/local/child/prompt/chat-template.ts';
import { fit, keepNewest } from '#inference/engines/local/child/prompt/context-window.ts';
import { toPieces } from '#inference/engines/local/child/vocabulary.ts';
import { FairQueue } from '#lib/async/fair-queue.ts';

/** Every way to cut the text into two, and into single characters. */
function cuts(text: string): string[][] {
  return [
    [...text],
    ...Array.from({ length: text.length + 1 }, (_, at) => [text.slice(0, at), text.slice(at)]),
  ];
}

function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
}

describe('a text stream', () => {
  test('gives the same text and stop however the bytes are split', () => {
    const random = randomOf(7);
    const alphabet = ['a', 'b', 'é', '日', '👧', ' '];
    const word = (length: number) =>
      Array.from({ length }, () => alphabet[random(alphabet.length)]).join('');
    for (let round = 0; round < 400; round++) {
      const text = word(1 + random(20));
      const stops = Array.from({ length: 1 + random(3) }, () => word(1 + random(3)));
      const stream = createTextStream(stops, false, null);
      const bytes = Buffer.from(text);
      let sent = '';
      let stop: string | null = null;
      for (let at = 0; at < bytes.length && stop === null; ) {
        const length = 1 + random(4);
        const output = stream.push(bytes.subarray(at, at + length));
        assert.ok(output.text.isWellFormed());
        sent += output.text;
        stop = output.stop;
        at += length;
      }
      if (stop === null) sent += stream.end();
      const found = findStop(text, 0, stops);
      assert.equal(stop, found?.stop ?? null);
      assert.equal(sent, text.slice(0, found?.start ?? text.length));
    }
  });

  test('shows invalid bytes as replacement characters, at the end too', () => {
    const stream = createTextStream([], false, null);
    assert.equal(stream.push(Uint8Array.of(0xff)).text, '\ufffd');
    assert.equal(stream.push(Uint8Array.of(0xe6, 0x97)).text, '');
    assert.equal(stream.end(), '\ufffd');
  });
});

describe('a tool call stream', () => {
  const read = (parts: readonly string[]) => {
    const stream = createToolCallStream();
    const outputs = [...parts.map((part) => stream.push(part)), stream.end()];
    const calls: { name: string; arguments: string }[] = [];
    for (const { index, function: part } of outputs.flatMap((output) => output.calls)) {
      calls[index] ??= { name: part.name ?? '', arguments: '' };
      calls[index].arguments += part.arguments;
    }
    return { content: outputs.map(({ content }) => content).join(''), calls };
  };
  const cases: [string, ReturnType<typeof read>][] = [
    ['no call < here', { content: 'no call < here', calls: [] }],
    [
      'Sure.\n<tool_call>{"name": "a", "arguments": {"x": "}<\\"]", "y": [1, {}]}}</tool_call>',
      { content: 'Sure.', calls: [{ name: 'a', arguments: '{"x": "}<\\"]", "y": [1, {}]}' }] },
    ],
    [
      '<tool_call>{"name":"a","arguments":{}}</tool_call>\n<tool_call>{"arguments": {"z":1} , "name":"b"}</tool_call>',
      {
        content: '',
        calls: [
          { name: 'a', arguments: '{}' },
          { name: 'b', arguments: '{"z":1}' },
        ],
      },
    ],
    [
      '<tool_call>{"name":"a","parameters":"{\\"x\\":1}"}</tool_call> and so on',
      { content: 'and so on', calls: [{ name: 'a', arguments: '{"x":1}' }] },
    ],
    [
      '<tool_call>{"name":"a"}</tool_call>',
      { content: '', calls: [{ name: 'a', arguments: '{}' }] },
    ],
    ['<tool_call>nonsense', { content: '<tool_call>nonsense', calls: [] }],
    ['<tool_call>{"nam', { content: '<tool_call>{"nam', calls: [] }],
    [
      '<tool_call>{"name":"a","arguments":{"x":',
      { content: '', calls: [{ name: 'a', arguments: '{"x":' }] },
    ],
  ];
  for (const [text, expected] of cases)
    test(`reads ${JSON.stringify(text)} the same wherever it is split`, () => {
      for (const parts of cuts(text)) assert.deepEqual(read(parts), expected);
    });
});

describe('the window', () => {
  const rules = { own: 100, requested: 1000, standIn: true };

  test('leaves room for the response, at most a quarter', () => {
    assert.equal(fit(rules, 500, null, 'prompt').maxPromptTokens, 75);
    assert.equal(fit(rules, 500, 5, 'prompt').maxPromptTokens, 95);
    assert.equal(fit(rules, 500, null, 'prompt').toMaxTokens(75), 25);
    assert.equal(fit(rules, 50, 10, 'prompt').toMaxTokens(50), 10);
    assert.equal(fit({ ...rules, standIn: false }, 50, null, 'prompt').toMaxTokens(50), 50);
  });

  test('keeps the system message, whole turns from a user on, and the newest last', async () => {
    const turn = (role: string, content: string) => ({ role, content });
    const messages = [
      turn('system', 's'),
      ...['a', 'b', 'c', 'd'].flatMap((it) => [turn('user', it), turn('assistant', it)]),
      turn('user', 'z'),
    ];
    const prompt = { messages, tools: null, continues: false, addsGenerationPrompt: true };
    const toTokens = async (it: { messages: { content: string }[] }) =>
      it.messages.flatMap(({ content }) => [...content].map((char) => char.charCodeAt(0)));
    const text = async (budget: number) =>
      String.fromCharCode(...(await keepNewest(prompt, budget, toTokens)));
    assert.equal(await text(20), 'saabbccddz');
    assert.equal(await text(7), 'sccddz');
    assert.equal(await text(2), 'sz');
  });
});

test('a fair queue serves callers in turn and skips items that may not go', () => {
  const queue = new FairQueue<number>();
  for (const item of [1, 2, 3]) queue.push('greedy', item);
  queue.push('modest', 10);
  assert.equal(
    queue.take((item) => item > 1),
    2,
  );
  assert.equal(
    queue.take(() => true),
    10,
  );
  assert.equal(queue.remove('greedy', 3), true);
  assert.equal(queue.remove('greedy', 3), false);
  assert.equal(
    queue.take(() => true),
    1,
  );
  assert.equal(
    queue.take(() => true),
    undefined,
  );
  assert.equal(queue.size, 0);
});

test('pieces of a text join to it and never split a character', () => {
  for (const text of ['word '.repeat(9000), '👩'.repeat(20_000), 'x'.repeat(40_000), '']) {
    const pieces = [...toPieces(text)];
    assert.equal(pieces.join(''), text);
    assert.ok(pieces.every((piece) => piece.isWellFormed()));
  }
});

test('seeds of more than 32 bits count in full, negative ones too', () => {
  const seeds = [0, 1, 2 ** 32, 2 ** 40, -1, -2, 2 ** 53 - 1].map((seed) => toSeed(seed, 0));
  assert.equal(new Set(seeds.slice(0, 4)).size, 4);
  assert.equal(toSeed(2 ** 53 - 2, 1), toSeed(2 ** 53 - 1, 0));
  assert.ok(seeds.every((seed) => Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32));
});

test('threads leave a core for the rest of the machine', () => {
  assert.deepEqual([1, 2, 4, 8, 64].map(toThreadCount), [1, 1, 3, 7, 8]);
});

describe('a chat template', () => {
  const prompt = {
    messages: [
      { role: 'developer', content: 'Be brief.' },
      { role: 'user', content: 'Hi' },
    ],
    tools: null,
    continues: false,
    addsGenerationPrompt: true,
  };
  const plain =
    "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
  const specialText = { bos_token: '<s>', eos_token: '</s>' };

  test('that has no developer role is given a system message', () => {
    const rendered = createChatTemplate(plain, specialText).render(prompt);
    assert.equal(rendered, '[system]Be brief.[user]Hi[assistant]');
  });

  test('that has no tools gets them and their calls in a message', () => {
    const rendered = createChatTemplate(plain, specialText).render({
      ...prompt,
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: '',
          tool_calls: [
            { id: '1', type: 'function', function: { name: 'look', arguments: { at: 1 } } },
          ],
        },
      ],
      tools: [{ type: 'function', function: { name: 'look' } }],
    });
    assert.match(rendered, /^\[system\].*"name":"look"/s);
    assert.match(rendered, /<tool_call>\{"name":"look","arguments":\{"at":1\}\}<\/tool_call>/);
  });

  test('that trims or drops the last message does so only if it is not continued', () => {
    const messages = [{ role: 'assistant', content: 'Once upon \n' }];
    const continued = { ...prompt, messages, continues: true, addsGenerationPrompt: false };
    const trims = "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] | trim }};{% endfor %}";
    const rendered = createChatTemplate(trims, specialText).render(continued);
    assert.equal(rendered, '[assistant]Once upon \n');
    assert.throws(
      () => createChatTemplate('{{ bos_token }}', specialText).render(continued),
      (error: EngineError) => error.failure === 'rejected' && error.param === 'messages',
    );
  });

  test('that is absent is replaced by the common one, whose start token is known', () => {
    const rendered = createChatTemplate(null, specialText).render(prompt);
    assert.match(rendered, /<\|im_start\|>system\nBe brief\.<\|im_end\|>/);
    const start = createChatTemplate('{{ bos_token }}', specialText).render(prompt);
    assert.equal(start, '<s>');
  });

  test('that takes a system message only at the start gets later ones as notes, in their place', () => {
    const strict = `{% for m in messages %}{% if m['role'] == 'system' and not loop.first %}{{ raise_exception('Only first') }}{% endif %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}`;
    const messages = [...prompt.messages, { role: 'system', content: 'It is noon.' }];
    const rendered = createChatTemplate(strict, specialText).render({ ...prompt, messages });
    const note = '<system-note>\nIt is noon.\n</system-note>';
    assert.equal(rendered, `[system]Be brief.[user]Hi[user]${note}`);
    const kept = createChatTemplate(plain, specialText).render({ ...prompt, messages });
    assert.equal(kept, '[system]Be brief.[user]Hi[system]It is noon.[assistant]');
  });

  test('that refuses the messages, or can’t be read, is the request’s fault', () => {
    for (const source of ["{{ raise_exception('No developers') }}", '{% if %}'])
      assert.throws(
        () => createChatTemplate(source, specialText).render(prompt),
        (error: EngineError) => error.failure === 'rejected' && error.param === 'messages',
      );
  });
});
