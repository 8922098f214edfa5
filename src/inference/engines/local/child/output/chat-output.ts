// A choice as chat deltas: the role first, then thoughts, content and tool calls as they come, the finish reason last.

import type { Vocabulary } from '#inference/engines/local/child/vocabulary.ts';
import { type ThinkTags, ThoughtSplitter } from '#inference/think-tags.ts';
import type { ChatChoiceDelta, ToolCallDelta } from '#inference/wire/response.ts';
import type { ChoiceOutput, PlacedToken } from './choice.ts';
import type { LazyGrammar } from './lazy-grammar.ts';
import { toChatEntry } from './logprobs.ts';
import { createToolCallStream } from './tool-calls.ts';

interface ChatOutputOptions {
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

/**
 * A chat's output whose thoughts are split off: they are sent as reasoning, and only the answer reaches the output, so
 * that a tool call which a model only thinks about is not made.
 */
export function createThoughtOutput(
  answer: ChoiceOutput,
  tags: ThinkTags,
  emit: (reasoning: string) => void,
): ChoiceOutput {
  const thoughts = new ThoughtSplitter(tags);
  /** Scored tokens of text that may be a tag. Those of thoughts are dropped: scores are about the answer. */
  let held: PlacedToken[] = [];

  return {
    get inCall() {
      return answer.inCall;
    },
    get isThinking() {
      return thoughts.isThinking;
    },
    begin: answer.begin,
    token: answer.token,
    text(text, scored) {
      if (thoughts.isDone) {
        answer.text(text, scored);
        return;
      }
      held.push(...scored);
      const { reasoning, content } = thoughts.push(text);
      if (reasoning !== '') emit(reasoning);
      if (thoughts.isThinking) held = [];
      if (!thoughts.isDone) return;
      answer.text(content, held);
      held = [];
    },
    flush: answer.flush,
    end(reason, stop) {
      answer.begin();
      const { reasoning, content } = thoughts.end();
      if (reasoning !== '') emit(reasoning);
      if (content !== '') answer.text(content, held);
      answer.end(reason, stop);
    },
  };
}
