// What an idle deployment does, in words.

import { toDuration } from './format.ts';

interface Ladder {
  readonly asleep: number | null;
  readonly stopped: number | null;
  readonly gone: number | null;
}

const verbs = { asleep: 'sleeps', stopped: 'stops', gone: 'is removed' } as const;

/** As in `sleeps after 1 min, is removed after 10 min`. */
export function toLadderText(ladder: Ladder): string {
  const steps = (['asleep', 'stopped', 'gone'] as const).flatMap((step) => {
    const seconds = ladder[step];
    return seconds === null ? [] : [`${verbs[step]} after ${toDuration(seconds * 1_000)}`];
  });
  return steps.join(', ') || 'runs on';
}
