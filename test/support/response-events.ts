// A state machine that accepts the events of one response stream, in the order that clients rely on, and rebuilds the
// response from them alone.

import assert from 'node:assert/strict';
import type { OutputItem, ResponseObject } from '#inference/apis/responses/schema.ts';
import { fromBytes } from '#lib/memory/byte-string.ts';

export interface ResponseEvent {
  type: string;
  sequence_number: number;
  response?: ResponseObject;
  item?: OutputItem;
  item_id?: string;
  output_index?: number;
  delta?: string;
  text?: string;
  arguments?: string;
  input?: string;
  part?: { type: string; text: string };
}

export function parseResponseEvents(bytes: string): ResponseEvent[] {
  const blocks = fromBytes(bytes).split('\n\n').slice(0, -1);
  return blocks.map((block) => {
    const [name = '', data = '', ...more] = block.split('\n');
    assert.deepEqual(more, []);
    const event = JSON.parse(data.slice('data: '.length)) as ResponseEvent;
    assert.equal(name, `event: ${event.type}`);
    return event;
  });
}

interface Seen {
  item: OutputItem;
  state: 'added' | 'part' | 'text done' | 'part done' | 'done';
  text: string;
}

/** Returns the final response. Throws AssertionError at the first event that is out of order. */
export function checkResponseEvents(events: readonly ResponseEvent[]): ResponseObject {
  assert.deepEqual(
    events.map(({ sequence_number }) => sequence_number),
    events.map((_, index) => index),
  );
  assert.deepEqual(
    events.slice(0, 2).map(({ type }) => type),
    ['response.created', 'response.in_progress'],
  );
  const items: Seen[] = [];
  for (const event of events.slice(2, -1)) {
    if (event.type !== 'response.in_progress') step(items, event);
  }
  const last = events.at(-1);
  assert.match(last?.type ?? '', /^response\.(completed|incomplete|failed)$/);
  const response = last?.response as ResponseObject;
  assert.equal(`response.${response.status}`, last?.type);
  if (response.status !== 'failed') {
    assert.ok(items.every(({ state }) => state === 'done'));
    assert.deepEqual(
      response.output,
      items.map(({ item }) => item),
    );
  }
  return response;
}

function step(items: Seen[], event: ResponseEvent): void {
  const index = event.output_index as number;
  const type = event.type.slice('response.'.length);
  if (type === 'output_item.added') {
    assert.equal(index, items.length);
    items.push({ item: event.item as OutputItem, state: 'added', text: '' });
    assert.equal(event.item?.status, 'in_progress');
    return;
  }
  const seen = items[index] as Seen;
  const { item } = seen;
  if (type === 'output_item.done') {
    assert.equal(event.item?.id, item.id);
    assert.equal(seen.state, closedStates[item.type]);
    assert.equal(textOf(event.item as OutputItem) ?? seen.text, seen.text);
    seen.state = 'done';
    seen.item = event.item as OutputItem;
    return;
  }
  assert.equal(event.item_id, item.id);
  const expected = transitions[type]?.[item.type];
  assert.ok(expected, `${type} of ${item.type}`);
  assert.ok(expected.from.includes(seen.state), `${type} after ${seen.state} of ${item.type}`);
  seen.state = expected.to;
  if (type.endsWith('.delta')) seen.text += event.delta;
  if (type.endsWith('.done')) {
    const whole = event.text ?? event.arguments ?? event.input ?? event.part?.text;
    assert.equal(whole, seen.text);
  }
}

interface Transition {
  from: Seen['state'][];
  to: Seen['state'];
}

const textPart: Record<string, Transition> = {
  'content_part.added': { from: ['added'], to: 'part' },
  delta: { from: ['part'], to: 'part' },
  done: { from: ['part'], to: 'text done' },
  'content_part.done': { from: ['text done'], to: 'part done' },
};

const argument: Record<string, Transition> = {
  delta: { from: ['added', 'part'], to: 'part' },
  done: { from: ['added', 'part'], to: 'text done' },
};

const both = (name: string) => ({
  message: textPart[name] as Transition,
  reasoning: textPart[name] as Transition,
});

const transitions: Record<string, Partial<Record<OutputItem['type'], Transition>>> = {
  'content_part.added': both('content_part.added'),
  'content_part.done': both('content_part.done'),
  'output_text.delta': { message: textPart.delta as Transition },
  'output_text.done': { message: textPart.done as Transition },
  'reasoning_text.delta': { reasoning: textPart.delta as Transition },
  'reasoning_text.done': { reasoning: textPart.done as Transition },
  'function_call_arguments.delta': { function_call: argument.delta as Transition },
  'function_call_arguments.done': { function_call: argument.done as Transition },
  'custom_tool_call_input.delta': { custom_tool_call: argument.delta as Transition },
  'custom_tool_call_input.done': { custom_tool_call: argument.done as Transition },
};

const closedStates: Record<OutputItem['type'], Seen['state']> = {
  message: 'part done',
  reasoning: 'part done',
  function_call: 'text done',
  custom_tool_call: 'text done',
  local_shell_call: 'added',
  tool_search_call: 'added',
};

/** Undefined for items whose content is not streamed. */
export function textOf(item: OutputItem): string | undefined {
  switch (item.type) {
    case 'message':
    case 'reasoning':
      return item.content.map(({ text }) => text).join('');
    case 'function_call':
      return item.arguments;
    case 'custom_tool_call':
      return item.input;
    default:
      return undefined;
  }
}
