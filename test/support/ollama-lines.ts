// Reads a stream of Ollama's API, and checks its lines as it goes.

import assert from 'node:assert/strict';

export interface ReadLines {
  text: string;
  thoughts: string;
  calls: { name: string; arguments: object }[];
  reason: string;
}

interface Line {
  model: string;
  created_at: string;
  done: boolean;
  done_reason?: string;
  eval_count?: number;
  prompt_eval_count?: number;
  response?: string;
  thinking?: string;
  message?: {
    role: string;
    content: string;
    thinking?: string;
    tool_calls?: { function: { index: number; name: string; arguments: object } }[];
  };
}

/** Throws if the lines are not a valid and complete sequence. */
export function readLines(text: string): ReadLines {
  assert(text.endsWith('\n'));
  const lines = text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
  const read: ReadLines = { text: '', thoughts: '', calls: [], reason: '' };
  for (const [at, line] of lines.entries()) {
    const { model, created_at, done, message, response } = line;
    assert(typeof model === 'string' && !Number.isNaN(Date.parse(created_at)));
    assert.equal(done, at === lines.length - 1);
    assert.equal(message === undefined, typeof response === 'string');
    if (message !== undefined) assert.equal(message.role, 'assistant');
    read.text += message?.content ?? response;
    read.thoughts += message?.thinking ?? line.thinking ?? '';
    for (const { function: called } of message?.tool_calls ?? []) {
      assert.equal(called.index, read.calls.length);
      read.calls.push({ name: called.name, arguments: called.arguments });
    }
  }
  const last = lines.at(-1);
  assert(Number.isInteger(last?.eval_count) && Number.isInteger(last?.prompt_eval_count));
  return { ...read, reason: last?.done_reason ?? '' };
}
