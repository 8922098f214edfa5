// Finds tool calls in generated text and passes their parts on as they come. Arguments are forwarded character by
// character, so a chunk boundary may be anywhere.

import { randomInt } from 'node:crypto';
import { toolCallClosing, toolCallOpening } from '#inference/engines/local/protocol.ts';
import { heldLength } from '#inference/held-length.ts';
import type { ToolCallDelta } from '#inference/wire/response.ts';
import { CallReader } from './call-reader.ts';

export interface ToolCallOutput {
  content: string;
  calls: ToolCallDelta[];
}

export interface ToolCallStream {
  push(text: string): ToolCallOutput;
  end(): ToolCallOutput;
  /** Calls begun so far. */
  readonly count: number;
  /** True from a call's opening tag to the end of its JSON. */
  readonly inCall: boolean;
}

export function createToolCallStream(): ToolCallStream {
  let held = '';
  let reader: CallReader | null = null;
  let count = 0;
  let justCalled = false;

  function readText(text: string, output: ToolCallOutput): string {
    // A call's closing tag and the line break before the next call are not content.
    const fresh = justCalled ? text.trimStart() : text;
    if (justCalled && fresh.startsWith(toolCallClosing)) return fresh.slice(toolCallClosing.length);
    const at = fresh.indexOf(toolCallOpening);
    if (at >= 0) {
      output.content += fresh.slice(0, at).trimEnd();
      reader = new CallReader(count, toCallId());
      return fresh.slice(at + toolCallOpening.length);
    }
    const tags = justCalled ? [toolCallOpening, toolCallClosing] : [toolCallOpening];
    const sure = fresh.slice(0, fresh.length - heldLength(fresh, tags)).trimEnd().length;
    if (sure > 0) justCalled = false;
    output.content += fresh.slice(0, sure);
    held = fresh.slice(sure);
    return '';
  }

  function readCall(text: string, output: ToolCallOutput): string {
    if (reader === null) return text;
    const { rest, deltas, state } = reader.push(text);
    output.calls.push(...deltas);
    if (state === 'open') return '';
    justCalled = state === 'done';
    if (justCalled) count++;
    else output.content += toolCallOpening + reader.raw;
    reader = null;
    return rest;
  }

  return {
    get count() {
      return reader?.begun ? count + 1 : count;
    },
    get inCall() {
      return reader !== null;
    },
    push(text) {
      const output: ToolCallOutput = { content: '', calls: [] };
      let rest = held + text;
      held = '';
      while (rest !== '') rest = reader === null ? readText(rest, output) : readCall(rest, output);
      return output;
    },
    end() {
      const unread = reader !== null && !reader.begun ? toolCallOpening + reader.raw : '';
      if (reader?.begun) count++;
      reader = null;
      const content = justCalled ? held.trim() : held;
      return { content: content + unread, calls: [] };
    },
  };
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

function toCallId(): string {
  const letters = Array.from({ length: 24 }, () => alphabet[randomInt(alphabet.length)]);
  return `call_${letters.join('')}`;
}
