// Chunks folded into the plain answer.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { foldChunks } from '#inference/wire/fold.ts';
import type { ChatChoice, EngineChunk } from '#inference/wire/response.ts';

const usage = {
  prompt_tokens: 1,
  completion_tokens: 2,
  total_tokens: 3,
  prompt_tokens_details: null,
};
const end: EngineChunk = { choices: [], usage };

test('content and tool calls are joined by index, in order', () => {
  const delta = (index: number, given: object, finish: 'stop' | 'tool_calls' | null = null) => ({
    choices: [{ index, delta: given, logprobs: null, finish_reason: finish }],
    usage: null,
  });
  const answer = foldChunks('chat', [
    delta(1, { role: 'assistant', content: '' }),
    delta(0, { role: 'assistant', content: '' }),
    delta(1, { content: 'He' }),
    delta(0, {
      tool_calls: [
        { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } },
        { index: 0, function: { arguments: '{"a"' } },
      ],
    }),
    delta(1, { content: 'y' }, 'stop'),
    delta(0, { tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }, 'tool_calls'),
    end,
  ]);
  const message = { role: 'assistant', function_call: null, refusal: null };
  assert.deepEqual(answer, {
    usage,
    choices: [
      {
        index: 0,
        message: {
          ...message,
          content: null,
          tool_calls: [
            { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } },
          ],
        },
        logprobs: null,
        finish_reason: 'tool_calls',
      },
      {
        index: 1,
        message: { ...message, content: 'Hey', tool_calls: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
  });
});

test('a tool call keeps an id and a name that come after its first piece', () => {
  const piece = (given: object, finish: 'tool_calls' | null = null): EngineChunk => ({
    choices: [
      { index: 0, delta: { tool_calls: [given] }, logprobs: null, finish_reason: finish },
    ] as EngineChunk['choices'],
    usage: null,
  });
  const { choices } = foldChunks('chat', [
    piece({ index: 0 }),
    piece({ index: 0, id: 'call_1', function: { name: 'f' } }),
    piece({ index: 0, function: { arguments: '{}' } }, 'tool_calls'),
    end,
  ]);
  assert.deepEqual((choices[0] as ChatChoice).message.tool_calls, [
    { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } },
  ]);
});

test('text, scores and the stop reason of completions are joined', () => {
  const part = (text: string, at: number) => ({
    index: 0,
    text,
    logprobs: {
      tokens: [text],
      token_logprobs: [-at],
      top_logprobs: [{ [text]: -at }],
      text_offset: [at],
    },
    finish_reason: null,
    stop_reason: null,
  });
  const answer = foldChunks('completion', [
    { choices: [{ ...part('a', 0), prompt_logprobs: [null] }], usage: null },
    { choices: [{ ...part('b', 1), finish_reason: 'stop', stop_reason: 'c' }], usage: null },
    end,
  ]);
  assert.deepEqual(answer.choices, [
    {
      index: 0,
      text: 'ab',
      logprobs: {
        tokens: ['a', 'b'],
        token_logprobs: [-0, -1],
        top_logprobs: [{ a: -0 }, { b: -1 }],
        text_offset: [0, 1],
      },
      finish_reason: 'stop',
      stop_reason: 'c',
      prompt_logprobs: [null],
    },
  ]);
});

test('a stream without usage or without a finish reason is no answer', () => {
  const open = { index: 0, delta: { content: 'x' }, logprobs: null, finish_reason: null };
  assert.throws(() => foldChunks('chat', [{ choices: [open], usage: null }]), /usage/);
  assert.throws(() => foldChunks('chat', [{ choices: [open], usage: null }, end]), /finish/);
});
