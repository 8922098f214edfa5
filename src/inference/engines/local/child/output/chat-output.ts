// A choice as chat deltas: the role first, content and tool calls as they come, the finish reason last.

import type { ChatChoiceDelta, ToolCallDelta } from '#inference/engine.ts';
import type { Binding, Grammar } from '#inference/engines/local/child/binding.ts';
import { toolOpening } from '#inference/engines/local/child/prompt/chat-template.ts';
import type { TokenSampler } from '#inference/engines/local/child/sampling.ts';
import type { Vocabulary } from '#inference/engines/local/child/vocabulary.ts';
import type { ChoiceOutput, PlacedToken } from './choice.ts';
import { toChatEntry } from './logprobs.ts';
import { createToolCallStream } from './tool-calls.ts';

export interface ChatOutputOptions {
  index: number;
  logprobs: boolean;
  /** Tool calls are looked for in the text. */
  tools: boolean;
  /** Switched on when the model opens a tool call by itself; null when it is on from the start. */
  lazyGrammar: (() => Grammar) | null;
}

/** A tag is a few tokens at most. */
const tagTokens = 16;

export function createChatOutput(
  binding: Binding,
  vocabulary: Vocabulary,
  sampler: TokenSampler,
  options: ChatOutputOptions,
  emit: (choice: ChatChoiceDelta) => void,
): ChoiceOutput {
  const { index } = options;
  const calls = options.tools ? createToolCallStream() : null;
  let begun = false;
  let recent: number[] = [];
  let constrained = options.lazyGrammar === null;

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

  /** One call's delta a chunk: clients keep one entry per index of each. */
  function send(content: string, parts: readonly ToolCallDelta[], scored: PlacedToken[]): void {
    const deltas: ChatChoiceDelta['delta'][] = parts.map((part) => ({ tool_calls: [part] }));
    if (content !== '' || (parts.length === 0 && scored.length > 0)) deltas.unshift({ content });
    for (const [at, delta] of deltas.entries()) {
      begin();
      const entries = at === 0 ? scored.map((entry) => toChatEntry(vocabulary, entry)) : [];
      const logprobs = options.logprobs ? { content: entries, refusal: null } : null;
      emit({ index, delta, logprobs, finish_reason: null });
    }
  }

  /** Only where the opening begins with a token: then the grammar can read it again from there. */
  function constrain(): void {
    constrained = true;
    const from = recent.findLastIndex((_, at) =>
      recent
        .slice(at)
        .map((token) => vocabulary.name(token))
        .join('')
        .startsWith(toolOpening),
    );
    if (from < 0 || options.lazyGrammar === null) return;
    try {
      const state = binding.createGrammarState(options.lazyGrammar());
      for (const token of recent.slice(from)) binding.acceptInGrammar(state, token);
      sampler.constrain(state);
    } catch {
      // The model opened its call in a way the grammar can't follow; it is read as it comes then.
    }
  }

  return {
    get inCall() {
      return calls?.inCall ?? false;
    },
    token(token) {
      begin();
      if (!constrained) recent = [...recent, token].slice(-tagTokens);
    },
    text(text, scored) {
      if (calls === null) return send(text, [], scored);
      const output = calls.push(text);
      send(output.content, output.calls, scored);
      if (!constrained && calls.inCall) constrain();
    },
    flush() {},
    end(reason) {
      begin();
      const rest = calls?.end();
      if (rest !== undefined) send(rest.content, rest.calls, []);
      const called = reason === 'stop' && calls !== null && calls.count > 0;
      emit({ index, delta: {}, logprobs: null, finish_reason: called ? 'tool_calls' : reason });
    },
  };
}
