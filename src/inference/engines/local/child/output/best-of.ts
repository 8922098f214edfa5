// The choices of one prompt on their way out. If more candidates are generated than choices returned (`best_of`), they
// are held until the best are known; otherwise they pass through.

import type { ChatChoiceDelta, CompletionChoice } from '#inference/wire/response.ts';

type AnyChoice = ChatChoiceDelta | CompletionChoice;

export interface CandidateOutput {
  readonly index: number;
  emit(choice: AnyChoice): void;
  /** Adds the log-probability of one generated token. The candidates with the highest mean are returned. */
  score(logprob: number): void;
}

export interface BestOf {
  candidate(candidate: number): CandidateOutput;
}

export interface BestOfOptions {
  /** Choices to return. */
  n: number;
  /** Choices to generate; at least `n`. */
  candidates: number;
  /** The index of the prompt's first choice in the response. */
  firstIndex: number;
}

/** `onEnd` is called when all candidates have ended and the choices were emitted. */
export function createBestOf(
  { n, candidates, firstIndex }: BestOfOptions,
  emit: (choice: AnyChoice) => void,
  onEnd: () => void,
): BestOf {
  const states = Array.from({ length: candidates }, () => ({
    held: [] as AnyChoice[],
    total: 0,
    count: 0,
  }));
  let open = candidates;

  function finish(): void {
    if (--open > 0) return;
    if (candidates > n) {
      const mean = (state: { total: number; count: number }) =>
        state.total / Math.max(1, state.count);
      const best = states.toSorted((a, b) => mean(b) - mean(a)).slice(0, n);
      for (const [rank, { held }] of best.entries())
        for (const choice of held) emit({ ...choice, index: firstIndex + rank });
    }
    onEnd();
  }

  return {
    candidate(candidate) {
      const state = states[candidate];
      if (state === undefined) throw new Error('There is no such candidate');
      return {
        index: firstIndex + candidate,
        emit(choice) {
          if (candidates > n) state.held.push(choice);
          else emit(choice);
          if (choice.finish_reason !== null) finish();
        },
        score(logprob) {
          state.total += logprob;
          state.count++;
        },
      };
    },
  };
}
