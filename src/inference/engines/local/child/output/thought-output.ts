// A chat's output whose thoughts are split off: they are sent as reasoning, and only the answer reaches the output, so
// that a tool call which a model only thinks about is not made.

import { type ThinkTags, ThoughtSplitter } from '#inference/think-tags.ts';
import type { ChoiceOutput, PlacedToken } from './choice.ts';

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
