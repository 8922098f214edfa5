// Reads a stream of chat or text completions, and checks the order and the form of its events as it goes.

import assert from 'node:assert/strict';
import type { SaidCall } from './odd-streams.ts';

export interface ReadChat {
  text: string;
  thoughts: string;
  calls: SaidCall[];
  finish: string;
  usage: Record<string, unknown> | null;
}

interface Choice {
  index: number;
  text?: string;
  delta?: {
    role?: string;
    content?: string | null;
    reasoning_content?: string | null;
    tool_calls?: {
      index: number;
      id?: string;
      function: { name?: string; arguments: string };
    }[];
  };
  finish_reason: string | null;
}

interface ChatEvent {
  id: string;
  object: string;
  created: number;
  model: string;
  choices: Choice[];
  usage?: Record<string, unknown> | null;
}

/** Throws if the events are not a valid and complete sequence. */
export function readChat(text: string, includesUsage: boolean): ReadChat {
  const blocks = text.split('\n\n').filter((block) => block !== '' && !block.startsWith(':'));
  assert.equal(blocks.pop(), 'data: [DONE]');
  const events = blocks.map((block) => {
    assert(block.startsWith('data: {') && !block.includes('\n'), block);
    return JSON.parse(block.slice('data: '.length)) as ChatEvent;
  });
  const read: ReadChat = { text: '', thoughts: '', calls: [], finish: '', usage: null };
  const calls: SaidCall[] = [];
  const numbers: number[] = [];
  let isOpen = false;
  for (const event of events) {
    const { id, object, created, model, choices, usage } = event;
    const [first] = events;
    assert.deepEqual(
      [id, object, created, model],
      [first?.id, first?.object, first?.created, first?.model],
    );
    assert.equal(read.usage, null, 'an event after the usage');
    if (choices.length === 0) {
      assert(includesUsage && usage != null, 'an event without choices or usage');
      read.usage = usage;
      continue;
    }
    assert.equal(usage, includesUsage ? null : undefined);
    assert.equal(read.finish, '', 'a choice after its end');
    assert.equal(choices.length, 1);
    takeChoice(choices[0] as Choice);
  }
  assert.equal(read.usage !== null, includesUsage);
  assert.notEqual(read.finish, '', 'no finish reason');
  return { ...read, calls };

  function takeChoice({ index, text: written, delta, finish_reason }: Choice): void {
    assert.equal(index, 0);
    read.finish = finish_reason ?? '';
    read.text += written ?? delta?.content ?? '';
    if (written !== undefined) return;
    assert(typeof delta === 'object' && delta !== null, 'no delta');
    if (!isOpen) assert.equal(delta.role, 'assistant', 'the first delta has no role');
    isOpen = true;
    read.thoughts += delta.reasoning_content ?? '';
    for (const piece of delta.tool_calls ?? []) {
      assert(Number.isInteger(piece.index), 'a call without a number');
      if (!numbers.includes(piece.index)) {
        numbers.push(piece.index);
        calls.push({ id: '', name: '', arguments: '' });
      }
      const call = calls[numbers.indexOf(piece.index)] as SaidCall;
      call.id ||= piece.id ?? '';
      call.name ||= piece.function.name ?? '';
      call.arguments += piece.function.arguments;
    }
  }
}
