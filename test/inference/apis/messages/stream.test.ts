// The stream of the Messages API: any chunks that an engine may send become valid events with the same content.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createMessagesFormat } from '#inference/apis/messages/format.ts';
import type { MessagesRequest } from '#inference/apis/messages/schema.ts';
import type { Envelope } from '#inference/engine.ts';
import { contextLengthExceeded, InferenceError } from '#inference/errors.ts';
import { toWireEvents } from '#inference/wire/envelope.ts';
import type { ChatChoiceDelta, EngineChunk, Usage } from '#inference/wire/response.ts';
import { fromBytes } from '#lib/memory/byte-string.ts';
import {
  parseMessageEvents,
  type ReadMessage,
  readMessage,
} from '#test/support/messages-events.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';

const envelope: Envelope = {
  requestId: '0af1',
  id: 'chat-0af1',
  created: 1,
  model: 'agent',
  kind: 'chat',
};
const request: MessagesRequest = {
  model: 'agent',
  max_tokens: 100,
  messages: [{ role: 'user', content: 'Hi' }],
};
const usage: Usage = {
  prompt_tokens: 30,
  completion_tokens: 7,
  total_tokens: 37,
  prompt_tokens_details: { cached_tokens: 20 },
};

type Delta = ChatChoiceDelta['delta'];

const toChunk = (delta: Delta, more: object = {}): EngineChunk => ({
  choices: [{ index: 0, delta, logprobs: null, finish_reason: null, ...more }],
  usage: null,
});

function write(
  chunks: readonly EngineChunk[],
  { given = {}, total = usage }: { given?: Partial<MessagesRequest>; total?: Usage } = {},
): ReadMessage {
  const stream = createMessagesFormat({ ...request, ...given }).openStream(envelope);
  const written = [stream.begin(usage), ...chunks.map((chunk) => stream.take(chunk))];
  return readMessage(fromBytes([...written, stream.end(total) as string].join('')));
}

const ended = (finish_reason: string, more: object = {}) => toChunk({}, { finish_reason, ...more });

const callOf = (index: number, piece: string, opening: object = {}): Delta => ({
  tool_calls: [{ index, ...opening, function: { arguments: piece, ...opening } }],
});

test('a text becomes one block, and the usage leaves out what was cached', () => {
  const {
    start,
    blocks,
    delta,
    usage: counted,
  } = write([
    toChunk({ role: 'assistant', content: '' }),
    toChunk({ content: 'Grüße, ' }),
    toChunk({ content: '"Ada"' }),
    ended('stop'),
  ]);
  const input = {
    input_tokens: 10,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 20,
  };
  assert.equal(start.id, 'msg_0af1');
  assert.equal(start.model, 'agent');
  assert.deepEqual(start.usage, { ...input, output_tokens: 0 });
  assert.deepEqual(counted, { ...input, output_tokens: 7 });
  assert.deepEqual(blocks, [{ type: 'text', text: 'Grüße, "Ada"' }]);
  assert.deepEqual(delta, { stop_reason: 'end_turn', stop_sequence: null });
});

test('thoughts are signed before their block closes, and white space before a call is no block', () => {
  const { blocks, delta } = write([
    toChunk({ reasoning_content: 'Look first.' }),
    toChunk({ content: '\n\n' }),
    toChunk(callOf(0, '', { id: 'call_1', name: 'Bash' })),
    toChunk(callOf(0, '{"command":')),
    toChunk(callOf(0, '"ls"}')),
    ended('tool_calls'),
  ]);
  assert.deepEqual(blocks, [
    { type: 'thinking', text: 'Look first.', signature: 'msg_0af1' },
    { type: 'tool_use', text: '{"command":"ls"}', id: 'call_1', name: 'Bash' },
  ]);
  assert.equal(delta.stop_reason, 'tool_use');
});

test('a call without a name or an id does not break the stream', () => {
  const { blocks, delta } = write([
    toChunk(callOf(0, '{}')),
    toChunk({ content: 'Done.' }),
    ended('tool_calls'),
  ]);
  assert.deepEqual(blocks, [
    { type: 'tool_use', text: '{}', id: 'toolu_msg_0af1_0', name: '' },
    { type: 'text', text: 'Done.' },
  ]);
  assert.equal(delta.stop_reason, 'tool_use');
});

test('the stop reason says what ended the response', () => {
  const reasonOf = (end: EngineChunk, given: Partial<MessagesRequest> = {}) =>
    write([toChunk({ content: 'A' }), end], { given }).delta;
  const given = { stop_sequences: ['###', 'END'] };
  const stopped = { stop_reason: 'stop_sequence', stop_sequence: 'END' };
  assert.deepEqual(reasonOf(ended('stop', { stop_reason: 'END' }), given), stopped);
  assert.deepEqual(reasonOf(ended('stop', { matched_stop: 'END' }), given), stopped);
  assert.equal(reasonOf(ended('stop', { stop_reason: 128_009 }), given).stop_reason, 'end_turn');
  assert.equal(reasonOf(ended('content_filter')).stop_reason, 'refusal');
  assert.equal(reasonOf(ended('length'), { max_tokens: 7 }).stop_reason, 'max_tokens');
  assert.equal(
    reasonOf(ended('length'), { max_tokens: 32_000 }).stop_reason,
    'model_context_window_exceeded',
  );
  // No call was sent, so the client has nothing to answer.
  assert.equal(reasonOf(ended('tool_calls')).stop_reason, 'end_turn');
});

test('a request for no tokens gets none', () => {
  const { blocks, delta } = write([toChunk({ content: 'A' }), ended('length')], {
    given: { max_tokens: 0 },
  });
  assert.deepEqual(blocks, []);
  assert.equal(delta.stop_reason, 'max_tokens');
});

test('events that an upstream has written are read', () => {
  const stream = createMessagesFormat(request).openStream(envelope);
  const item = toWireEvents({ ...toChunk({ content: 'Grüße' }) });
  const events = fromBytes(stream.take(item));
  assert.match(events, /"text_delta","text":"Grüße"/);
});

test('a failure and a ping are events of their own', () => {
  const stream = createMessagesFormat(request).openStream(envelope);
  const overflow = contextLengthExceeded('messages', { window: 100, prompt: 130, completion: 1 });
  const failed = fromBytes(stream.fail(overflow) as string);
  assert.deepEqual(parseMessageEvents(failed), [
    {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: 'prompt is too long: 130 tokens > 100 maximum',
        details: { error_code: 'context_length_exceeded' },
      },
      request_id: '0af1',
    },
  ]);
  const busy = new InferenceError(503, 'Busy.', { code: 'server_is_overloaded' });
  assert.match(stream.fail(busy) as string, /"overloaded_error"/);
  assert.deepEqual(parseMessageEvents(stream.keepAlive?.() ?? ''), [{ type: 'ping' }]);
});

const visible = fc.string({ unit: 'grapheme', minLength: 1 }).map((text) => `${text}.`);
/** An object's JSON, cut into pieces. */
const argumentPieces = fc
  .tuple(fc.dictionary(fc.string(), fc.jsonValue()), fc.array(fc.nat(40), { maxLength: 6 }))
  .map(([value, lengths]) => {
    let rest = JSON.stringify(value);
    const pieces = lengths.map((length) => {
      const piece = rest.slice(0, length);
      rest = rest.slice(length);
      return piece;
    });
    return [...pieces, rest];
  });
/** Deltas of calls, texts and thoughts in any order; the pieces of each call stay in theirs. */
const responses = fc
  .record({
    calls: fc.array(argumentPieces, { maxLength: 4 }),
    others: fc.array(fc.tuple(fc.boolean(), visible), { maxLength: 12 }),
    order: fc.array(fc.nat(), { minLength: 60, maxLength: 60 }),
  })
  .map(({ calls, others, order }) => {
    const lanes: Delta[][] = calls.map((pieces, index) =>
      pieces.map((piece, at) =>
        callOf(index, piece, at === 0 ? { id: `call_${index}`, name: `tool_${index}` } : {}),
      ),
    );
    lanes.push(
      others.map(([isThought, text]) =>
        isThought ? { reasoning_content: text } : { content: text },
      ),
    );
    const deltas: Delta[] = [];
    for (let at = 0; lanes.some((lane) => lane.length > 0); at++) {
      const left = lanes.filter((lane) => lane.length > 0);
      const lane = left[(order[at % order.length] as number) % left.length] as Delta[];
      deltas.push(lane.shift() as Delta);
    }
    return { calls, others, deltas };
  });

test('any interleaving of text, thoughts and calls arrives whole, one block at a time', () => {
  fc.assert(
    fc.property(responses, fc.boolean(), ({ calls, others, deltas }, isWire) => {
      const stream = createMessagesFormat(request).openStream(envelope);
      const items = [...deltas.map((delta) => toChunk(delta)), ended('stop')].map((chunk) =>
        isWire ? toWireEvents({ ...chunk }) : chunk,
      );
      const written = items.map((item) => stream.take(item)).join('');
      const text = fromBytes(stream.begin(null) + written + (stream.end(usage) as string));
      const { blocks, delta } = readMessage(text);
      const join = (kind: string) =>
        blocks.flatMap(({ type, text }) => (type === kind ? [text] : [])).join('');
      const textOf = (isThought: boolean) =>
        others.flatMap(([thought, text]) => (thought === isThought ? [text] : [])).join('');
      assert.equal(join('text'), textOf(false));
      assert.equal(join('thinking'), textOf(true));
      const sent = blocks.filter(({ type }) => type === 'tool_use');
      const expected = calls.map((pieces, index) => [`call_${index}`, pieces.join('')]);
      const byId = sent.map(({ id, text }) => [id, text]).sort();
      assert.deepEqual(byId, expected);
      assert.equal(delta.stop_reason, calls.length > 0 ? 'tool_use' : 'end_turn');
    }),
    { seed: propertySeed, numRuns: propertyRuns(500) },
  );
});
