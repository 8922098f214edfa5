// The choices of one prompt on their way out: straight through, or, when more candidates are generated
// than choices wanted, held until the best are known.

import type { ChatChoiceDelta, CompletionChoice } from '#inference/engine.ts';

type AnyChoice = ChatChoiceDelta | CompletionChoice;

export interface Lane {
  readonly index: number;
  emit(choice: AnyChoice): void;
  score(logprob: number): void;
}

export interface Selection {
  lane(candidate: number): Lane;
}

export function createSelection(
  wanted: number,
  candidates: number,
  firstIndex: number,
  emit: (choice: AnyChoice) => void,
  onEnd: () => void,
): Selection {
  const lanes = Array.from({ length: candidates }, () => ({
    held: [] as AnyChoice[],
    total: 0,
    count: 0,
  }));
  let open = candidates;

  function finish(): void {
    if (--open > 0) return;
    if (candidates > wanted) {
      const mean = (lane: { total: number; count: number }) => lane.total / Math.max(1, lane.count);
      const best = lanes.toSorted((a, b) => mean(b) - mean(a)).slice(0, wanted);
      for (const [rank, { held }] of best.entries())
        for (const choice of held) emit({ ...choice, index: firstIndex + rank });
    }
    onEnd();
  }

  return {
    lane(candidate) {
      const lane = lanes[candidate];
      if (lane === undefined) throw new Error('There is no such candidate');
      return {
        index: firstIndex + candidate,
        emit(choice) {
          if (candidates > wanted) lane.held.push(choice);
          else emit(choice);
          if (choice.finish_reason !== null) finish();
        },
        score(logprob) {
          lane.total += logprob;
          lane.count++;
        },
      };
    },
  };
}
