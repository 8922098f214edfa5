// The events of a response stream: whatever chunks an engine sends, they are in order and have exactly what was sent.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createResponsesFormat } from '#inference/apis/responses/format.ts';
import { createToolSet } from '#inference/apis/responses/request/tools.ts';
import type {
  OutputItem,
  ResponseObject,
  ResponseRequest,
} from '#inference/apis/responses/schema.ts';
import { InferenceError } from '#inference/errors.ts';
import { toWireEvents } from '#inference/wire/envelope.ts';
import { foldChunks } from '#inference/wire/fold.ts';
import type { ChatChoice, ChatChoiceDelta, EngineChunk, Usage } from '#inference/wire/response.ts';
import { createHandClock } from '#test/support/clock.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';
import { checkResponseEvents, parseResponseEvents, textOf } from '#test/support/response-events.ts';

const envelope = {
  requestId: '0123',
  id: 'chat-0123',
  created: 1_763_000_000,
  model: 'mill',
  kind: 'chat',
} as const;
const usage: Usage = {
  prompt_tokens: 7,
  completion_tokens: 5,
  total_tokens: 12,
  prompt_tokens_details: { cached_tokens: 3 },
};

const tools: NonNullable<ResponseRequest['tools']> = [
  { type: 'function', name: 'look_up', parameters: { type: 'object' } },
  { type: 'custom', name: 'apply_patch' },
  { type: 'local_shell' },
  { type: 'namespace', name: 'agents', tools: [{ type: 'function', name: 'spawn' }] as never },
];

function createFormat(
  request: Partial<ResponseRequest> = {},
  onFinished?: (response: ResponseObject) => Promise<void>,
) {
  return createResponsesFormat({
    request: { model: 'mill', tools, ...request },
    id: 'resp_0123',
    tools: createToolSet(tools),
    clock: createHandClock(1_763_000_001_500),
    seal: (text) => `sealed ${text.length}`,
    onFinished,
  });
}

const toChunk = (
  delta: ChatChoiceDelta['delta'],
  finish: ChatChoiceDelta['finish_reason'] = null,
): EngineChunk => ({
  choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
  usage: null,
});

/** What one chunk carries. */
type Piece =
  | { kind: 'text'; text: string }
  | { kind: 'thoughts'; text: string }
  | { kind: 'call'; index: number; text: string };

const text = fc.string({ unit: 'grapheme', maxLength: 12 });
const anyPiece: fc.Arbitrary<Piece> = fc.oneof(
  fc.record({ kind: fc.constant('text' as const), text }),
  fc.record({ kind: fc.constant('thoughts' as const), text }),
  fc.record({ kind: fc.constant('call' as const), index: fc.nat({ max: 3 }), text }),
);

/** Functions that calls of an index are of. The last one is in no request. */
const names = ['look_up', 'apply_patch', 'agents__spawn', 'unheard_of'];

function toDeltas(pieces: readonly Piece[], nameAfter: number): ChatChoiceDelta['delta'][] {
  const seen = new Map<number, number>();
  return pieces.map((piece) => {
    if (piece.kind === 'text') return { content: piece.text };
    if (piece.kind === 'thoughts') return { reasoning_content: piece.text };
    const { index, text: args } = piece;
    const count = seen.get(index) ?? 0;
    seen.set(index, count + 1);
    const name = count === nameAfter && names[index];
    return {
      tool_calls: [
        {
          index,
          ...(count === 0 && { id: `call_${index}`, type: 'function' as const }),
          function: { ...(name && { name }), arguments: args },
        },
      ],
    };
  });
}

const joined = (items: readonly OutputItem[], type: OutputItem['type']) =>
  items
    .filter((item) => item.type === type)
    .map(textOf)
    .join('');

test('any sequence of chunks yields valid events with exactly what was sent', async () => {
  const property = fc.asyncProperty(
    fc.array(anyPiece, { maxLength: 24 }),
    fc.nat({ max: 2 }),
    fc.constantFrom('stop' as const, 'length' as const, 'tool_calls' as const),
    fc.constantFrom('chunks' as const, 'events' as const, 'packet' as const),
    async (pieces, nameAfter, finish, form) => {
      const chunks = [
        ...toDeltas(pieces, nameAfter).map((delta) => toChunk(delta)),
        toChunk({}, finish),
      ];
      const stream = createFormat().openStream(envelope);
      let bytes = stream.begin(null);
      const events = chunks.map(({ choices }) => toWireEvents({ choices }));
      const items = { chunks, events, packet: [events.join('')] }[form];
      for (const item of items) bytes += stream.take(item);
      bytes += await stream.end(usage);
      const { output, status } = checkResponseEvents(parseResponseEvents(bytes));
      assert.equal(status, finish === 'length' ? 'incomplete' : 'completed');
      const sent = (kind: Piece['kind']) =>
        pieces.map((piece) => (piece.kind === kind ? piece.text : '')).join('');
      assert.equal(joined(output, 'message'), sent('text'));
      assert.equal(joined(output, 'reasoning'), sent('thoughts'));
      for (const [index, name] of names.entries()) checkCall(output, pieces, index, name);
      assert.equal(new Set(output.map(({ id }) => id)).size, output.length);
    },
  );
  await fc.assert(property, { seed: propertySeed, numRuns: propertyRuns(1_000) });

  function checkCall(
    output: readonly OutputItem[],
    pieces: readonly Piece[],
    index: number,
    name: string,
  ) {
    const own = pieces.filter((piece) => piece.kind === 'call' && piece.index === index);
    const args = own.map((piece) => piece.text).join('');
    const item = output.find((one) => 'call_id' in one && one.call_id === `call_${index}`);
    if (own.length === 0) return assert.equal(item, undefined);
    if (item?.type === 'custom_tool_call') return assert.equal(item.input, toInput(args));
    assert.equal(item?.type, 'function_call');
    const isUnfinished = item?.status === 'incomplete';
    assert.equal(textOf(item as OutputItem), args === '' && !isUnfinished ? '{}' : args);
    const isNamed = item?.type === 'function_call' && item.name !== '';
    if (isNamed) assert.equal(item.name, name === 'agents__spawn' ? 'spawn' : name);
  }
});

/** Random arguments of a custom tool are passed on, unless they are a JSON string. */
function toInput(args: string): string {
  try {
    const value: unknown = JSON.parse(args);
    return typeof value === 'string' ? value : args;
  } catch {
    return args;
  }
}

test('the input of a custom tool is streamed without its JSON, however it is cut', async () => {
  const property = fc.asyncProperty(
    fc.string({
      unit: fc.constantFrom('a', '"', '\\', '\n', 'é', '👩‍🔧', '\u0001', '{', ' '),
      maxLength: 40,
    }),
    fc.nat({ max: 7 }),
    fc.constantFrom('', ' ', '\n'),
    async (input, size, gap) => {
      const args = `${gap}{${gap}"input"${gap}:${gap}${JSON.stringify(input)}${gap}}`;
      const stream = createFormat().openStream(envelope);
      let bytes = stream.begin(null);
      const call = (name: string | undefined, piece: string) =>
        stream.take(
          toChunk({
            tool_calls: [
              { index: 0, id: 'call_1', function: { ...(name && { name }), arguments: piece } },
            ],
          }),
        );
      bytes += call('apply_patch', '');
      for (let at = 0; at < args.length; at += size + 1) {
        bytes += call(undefined, args.slice(at, at + size + 1));
      }
      bytes += stream.take(toChunk({}, 'tool_calls'));
      bytes += await stream.end(usage);
      const { output } = checkResponseEvents(parseResponseEvents(bytes));
      assert.deepEqual(output, [
        {
          id: 'ctc_01230000',
          type: 'custom_tool_call',
          status: 'completed',
          call_id: 'call_1',
          name: 'apply_patch',
          input,
        },
      ]);
    },
  );
  await fc.assert(property, { seed: propertySeed, numRuns: propertyRuns(500) });
});

test('white space before the input of a custom tool is read once, however much there is', {
  timeout: 60_000,
}, async () => {
  const pieces = [...Array<string>(200_000).fill(' '), '{"input":', '"line\\nline"', '}'];
  const stream = createFormat().openStream(envelope);
  let bytes = stream.begin(null);
  const called = { name: 'apply_patch', arguments: '' };
  bytes += stream.take(toChunk({ tool_calls: [{ index: 0, id: 'call_1', function: called }] }));
  for (const piece of pieces) {
    const call = { index: 0, function: { arguments: piece } };
    bytes += stream.take(toChunk({ tool_calls: [call] }));
  }
  bytes += stream.take(toChunk({}, 'tool_calls'));
  const { output } = checkResponseEvents(parseResponseEvents(bytes + (await stream.end(usage))));
  assert.deepEqual(output.map(textOf), ['line\nline']);
});

const thinkThenCall: EngineChunk[] = [
  toChunk({ role: 'assistant', content: '' }),
  toChunk({ reasoning_content: 'Hm.' }),
  toChunk({ content: 'Let me ' }),
  toChunk({ content: 'look.' }),
  toChunk({
    tool_calls: [
      {
        index: 0,
        id: 'call_a',
        type: 'function',
        function: { name: 'look_up', arguments: '{"a"' },
      },
    ],
  }),
  toChunk({ tool_calls: [{ index: 0, function: { arguments: ':1}' } }] }),
  toChunk({}, 'tool_calls'),
];

test('a stream and the whole response have the same items, in OpenAI’s order of events', async () => {
  const finished: ResponseObject[] = [];
  const format = createFormat({ include: ['reasoning.encrypted_content'] }, async (response) => {
    finished.push(response);
  });
  const stream = format.openStream(envelope);
  let bytes = stream.begin(null);
  for (const chunk of thinkThenCall) bytes += stream.take(chunk);
  bytes += await stream.end(usage);
  const events = parseResponseEvents(bytes);
  assert.deepEqual(
    events.map(({ type }) => type.slice('response.'.length)),
    [
      ...['created', 'in_progress'],
      ...['output_item.added', 'content_part.added', 'reasoning_text.delta'],
      ...['reasoning_text.done', 'content_part.done', 'output_item.done'],
      ...['output_item.added', 'content_part.added', 'output_text.delta', 'output_text.delta'],
      ...['output_text.done', 'content_part.done', 'output_item.done'],
      ...['output_item.added', 'function_call_arguments.delta', 'function_call_arguments.delta'],
      ...['function_call_arguments.done', 'output_item.done'],
      'completed',
    ],
  );
  const streamed = checkResponseEvents(events);
  const folded = foldChunks('chat', [...thinkThenCall, { choices: [], usage }]);
  (folded.choices[0] as ChatChoice).message.reasoning_content = 'Hm.';
  const whole = await format.toWhole(folded, envelope);
  assert.deepEqual(streamed, whole);
  assert.deepEqual(finished, [whole, whole]);
  assert.deepEqual(streamed.usage, {
    input_tokens: 7,
    input_tokens_details: { cached_tokens: 3 },
    output_tokens: 5,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 12,
  });
  const [thoughts] = streamed.output;
  assert.equal(thoughts?.type === 'reasoning' && thoughts.encrypted_content, 'sealed 3');
});

test('a failed stream ends with response.failed, and announces no call that is cut off', async () => {
  const stream = createFormat().openStream(envelope);
  let bytes = stream.begin(null);
  for (const chunk of thinkThenCall.slice(0, 5)) bytes += stream.take(chunk);
  bytes += stream.keepAlive?.();
  bytes += await stream.fail(
    new InferenceError(503, 'mill is overloaded.', {
      code: 'server_is_overloaded',
      headers: { 'retry-after-ms': '1500' },
    }),
  );
  const events = parseResponseEvents(bytes);
  const failed = checkResponseEvents(events);
  assert.deepEqual(failed.error, {
    code: 'rate_limit_exceeded',
    message: 'mill is overloaded. Please try again in 1.5s.',
  });
  const done = events.filter(({ type }) => type === 'response.output_item.done');
  assert.deepEqual(
    done.map(({ item }) => item?.type),
    ['reasoning', 'message'],
  );
});

test('a stream that fails before its first chunk is created first', async () => {
  const format = createFormat();
  const overflow = new InferenceError(400, 'Too long.', { code: 'context_length_exceeded' });
  assert.equal(format.isSentInStream?.(overflow), true);
  const events = parseResponseEvents(await format.openStream(envelope).fail(overflow));
  assert.equal(checkResponseEvents(events).error?.code, 'context_length_exceeded');
});

test('a shell call has the command as the client runs it', async () => {
  const stream = createFormat().openStream(envelope);
  const command = { command: ['ls', '-l'], working_directory: '/tmp' };
  let bytes = stream.begin(null);
  bytes += stream.take(
    toChunk(
      {
        tool_calls: [
          {
            index: 0,
            id: 'call_s',
            function: { name: 'local_shell', arguments: JSON.stringify(command) },
          },
        ],
      },
      'tool_calls',
    ),
  );
  bytes += await stream.end(usage);
  const { output } = checkResponseEvents(parseResponseEvents(bytes));
  assert.deepEqual(output, [
    {
      id: 'lsh_01230000',
      type: 'local_shell_call',
      status: 'completed',
      call_id: 'call_s',
      action: { type: 'exec', command: ['ls', '-l'], env: {}, working_directory: '/tmp' },
    },
  ]);
});

test('a piece of text that is not JSON is left out', async () => {
  const stream = createFormat().openStream(envelope);
  const event = toWireEvents({ choices: toChunk({ content: 'mill' }).choices });
  let bytes = stream.begin(null);
  for (const piece of ['"mill"', '"\\x"', '" wheel"'])
    bytes += stream.take(event.replace('"mill"', () => piece));
  bytes += await stream.end(usage);
  const { output } = checkResponseEvents(parseResponseEvents(bytes));
  assert.equal(joined(output, 'message'), 'mill wheel');
});
