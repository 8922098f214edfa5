// Bounds the work that compiling one grammar may take, whatever the schema.

import { UnsupportedSchema } from '#inference/engines/local/grammar/schema/unsupported-schema.ts';

/** Counts work that the schema causes: about one unit per step of an innermost loop. Throws when it was too much. */
export type Spend = (amount: number) => void;

const maxWork = 15_000_000;

export function createWorkBudget(): Spend {
  let spent = 0;
  return (amount) => {
    spent += amount;
    if (spent > maxWork) throw new UnsupportedSchema('', '', 'takes too much work');
  };
}
