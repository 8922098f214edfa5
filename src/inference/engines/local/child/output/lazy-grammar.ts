// Switches a choice's grammar on when the model opens a tool call on its own.

import type { Binding, Grammar } from '#inference/engines/local/child/binding.ts';
import type { Vocabulary } from '#inference/engines/local/child/vocabulary.ts';
import { toolCallOpening } from '#inference/engines/local/protocol.ts';
import type { TokenSampler } from './sampling.ts';

export interface LazyGrammar {
  /** Notes a generated token, in case it is part of the opening tag. */
  see(token: number): void;
  /** Called when the opening tag was read. Only the first call has an effect. */
  switchOn(): void;
}

/** The opening tag is a few tokens at most. */
const maxTagTokens = 16;

export function createLazyGrammar(
  { binding, vocabulary }: { binding: Binding; vocabulary: Vocabulary },
  sampler: TokenSampler,
  parse: () => Grammar,
): LazyGrammar {
  let recent: number[] = [];
  let isOn = false;
  return {
    see(token) {
      if (!isOn) recent = [...recent, token].slice(-maxTagTokens);
    },
    switchOn() {
      if (isOn) return;
      isOn = true;
      const start = findOpening(vocabulary, recent);
      if (start < 0) return;
      try {
        const state = binding.createGrammarState(parse());
        for (const token of recent.slice(start)) binding.acceptInGrammar(state, token);
        sampler.constrain(state);
      } catch {
        // The model opened its call in a way that the grammar can't follow. The call is read without it.
      }
    },
  };
}

/** The tag must begin with a token: only then can the grammar read the tag again. -1 if it does not. */
function findOpening(vocabulary: Vocabulary, tokens: readonly number[]): number {
  const names = tokens.map((token) => vocabulary.name(token));
  return names.findLastIndex((_, at) => names.slice(at).join('').startsWith(toolCallOpening));
}
