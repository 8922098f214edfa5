// Keys for schemas and constraints by their content, so that each is processed only once.

import type { Conjunction, TypeConstraint } from './type-constraints.ts';
import { toCanonicalText } from './value-matching.ts';

export interface CacheKeys {
  /** Equal for the same schemas in any order. */
  conjunctionKey(conjunction: Conjunction): string;
  /** Equal for constraints that allow the same values, as far as that is known without comparing members. */
  constraintKey(constraint: TypeConstraint): string;
}

export function createCacheKeys(): CacheKeys {
  const numbers = new Map<object, number>();

  const numberOf = (part: object) => {
    const number = numbers.get(part) ?? numbers.size;
    numbers.set(part, number);
    return number;
  };

  const conjunctionKey = (conjunction: Conjunction) =>
    conjunction
      .map(({ schema }) => (typeof schema === 'object' && schema ? numberOf(schema) : `${schema}`))
      .toSorted()
      .join('+');

  const constraintKey = ({ exclusions, ...constraint }: TypeConstraint): string => {
    const own =
      constraint.type === 'const'
        ? `const ${constraint.implicit} ${toCanonicalText(constraint.value)}`
        : JSON.stringify(constraint, (name, value) => {
            if (name === 'automaton') return value && numberOf(value);
            if (name === 'properties')
              return [...value].map(([key, all]) => [key, conjunctionKey(all)]);
            if (name === 'prefix') return value.map(conjunctionKey);
            if (name === 'items' || name === 'additional') {
              return typeof value === 'string' ? value : [conjunctionKey(value)];
            }
            return value;
          });
    return `${own} ${exclusions.map(numberOf)}`;
  };

  return { conjunctionKey, constraintKey };
}
