// Reads a stream of the Messages API, and checks the order of its events as it goes.

import assert from 'node:assert/strict';

export interface ReadBlock {
  type: string;
  text: string;
  id?: string;
  name?: string;
  signature?: string;
}

export interface ReadMessage {
  start: Record<string, unknown>;
  blocks: ReadBlock[];
  delta: { stop_reason: string; stop_sequence: string | null };
  usage: Record<string, number>;
  pings: number;
}

interface StreamEvent {
  type: string;
  index: number;
  message: Record<string, unknown>;
  content_block: { type: string; id?: string; name?: string };
  delta: Record<string, string>;
  usage: Record<string, number>;
}

const deltaKinds: Record<string, [type: string, member: string]> = {
  text: ['text_delta', 'text'],
  thinking: ['thinking_delta', 'thinking'],
  tool_use: ['input_json_delta', 'partial_json'],
};

export function parseMessageEvents(text: string): StreamEvent[] {
  return text
    .split('\n\n')
    .filter((event) => event !== '' && !event.startsWith(':'))
    .map((event) => {
      const [, name, data] = /^event: (\w+)\ndata: (.+)$/s.exec(event) ?? assert.fail(event);
      const parsed = JSON.parse(data as string) as StreamEvent;
      assert.equal(parsed.type, name);
      return parsed;
    });
}

/** Throws if the events are not a valid and complete sequence. */
export function readMessage(text: string): ReadMessage {
  const all = parseMessageEvents(text);
  const events = all.filter(({ type }) => type !== 'ping');
  const first = events.shift();
  assert.equal(first?.type, 'message_start');
  assert.equal(events.pop()?.type, 'message_stop');
  const last = events.pop();
  assert.equal(last?.type, 'message_delta');
  const blocks: ReadBlock[] = [];
  let open: ReadBlock | null = null;
  for (const event of events) {
    if (event.type === 'content_block_start') {
      assert.equal(open, null, 'two blocks are open');
      assert.equal(event.index, blocks.length);
      const { type, id, name } = event.content_block;
      open = { type, text: '', ...(type === 'tool_use' && { id, name }) } as ReadBlock;
      blocks.push(open);
      continue;
    }
    assert(open !== null, `${event.type} outside of a block`);
    assert.equal(event.index, blocks.length - 1);
    if (event.type === 'content_block_stop') {
      assert.equal(open.signature !== undefined, open.type === 'thinking');
      assert(open.type === 'tool_use' || /\S/.test(open.text), 'an empty block');
      open = null;
      continue;
    }
    assert.equal(event.type, 'content_block_delta');
    assert.equal(open.signature, undefined, 'a delta after the signature');
    if (event.delta.type === 'signature_delta') {
      assert.equal(open.type, 'thinking');
      open.signature = event.delta.signature as string;
      continue;
    }
    const known: [string, string] = deltaKinds[open.type] ?? assert.fail(open.type);
    const [kind, member] = known;
    assert.equal(event.delta.type, kind);
    open.text += event.delta[member];
  }
  assert.equal(open, null, 'the last block is still open');
  const { delta, usage } = last as StreamEvent;
  return {
    start: (first as StreamEvent).message,
    blocks,
    delta: delta as unknown as ReadMessage['delta'],
    usage,
    pings: all.length - events.length - 3,
  };
}
