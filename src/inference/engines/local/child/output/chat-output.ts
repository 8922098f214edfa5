// A choice as chat deltas: the role first, then content and tool calls as they come, the finish reason last.

import type { ChatChoiceDelta, ToolCallDelta } from '#inference/engine.ts';
import type { Vocabulary } from '#inference/engines/local/child/vocabulary.ts';
import type { ChoiceOutput, PlacedToken } from './choice.ts';
import type { LazyGrammar } from './lazy-grammar.ts';
import { toChatEntry } from './logprobs.ts';
import { createToolCallStream } from './tool-calls.ts';

export interface ChatOutputOptions {
  index: number;
  logprobs: boolean;
  /** Tool calls are looked for in the text. */
  tools: boolean;
  /** Switched on when the model opens a tool call on its own; null if there is none. */
  lazyGrammar: LazyGrammar | null;
}

export function createChatOutput(
  vocabulary: Vocabulary,
  options: ChatOutputOptions,
  emit: (choice: ChatChoiceDelta) => void,
): ChoiceOutput {
  const { index, lazyGrammar } = options;
  const calls = options.tools ? createToolCallStream() : null;
  let begun = false;

  function begin(): void {
    if (begun) return;
    begun = true;
    emit({
      index,
      delta: { role: 'assistant', content: '' },
      logprobs: null,
      finish_reason: null,
    });
  }

  /** Sends each call's delta in a chunk of its own: clients keep one entry per index of each chunk. */
  function send(content: string, parts: readonly ToolCallDelta[], scored: PlacedToken[]): void {
    const deltas: ChatChoiceDelta['delta'][] = parts.map((part) => ({ tool_calls: [part] }));
    if (content !== '' || (parts.length === 0 && scored.length > 0)) deltas.unshift({ content });
    for (const [at, delta] of deltas.entries()) {
      const entries = at === 0 ? scored.map((entry) => toChatEntry(vocabulary, entry)) : [];
      const logprobs = options.logprobs ? { content: entries, refusal: null } : null;
      emit({ index, delta, logprobs, finish_reason: null });
    }
  }

  return {
    get inCall() {
      return calls?.inCall ?? false;
    },
    isThinking: false,
    begin,
    token(token) {
      lazyGrammar?.see(token);
    },
    text(text, scored) {
      if (calls === null) return send(text, [], scored);
      const output = calls.push(text);
      send(output.content, output.calls, scored);
      if (calls.inCall) lazyGrammar?.switchOn();
    },
    flush() {},
    end(reason, stop) {
      begin();
      const rest = calls?.end();
      if (rest !== undefined) send(rest.content, rest.calls, []);
      const called = reason === 'stop' && calls !== null && calls.count > 0;
      emit({
        index,
        delta: {},
        logprobs: null,
        finish_reason: called ? 'tool_calls' : reason,
        ...(typeof stop === 'string' && { stop_reason: stop }),
      });
    },
  };
}
