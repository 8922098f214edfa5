// Names for schemas and shapes by what they are, so that the same one is worked out only once.

import { toCanonicalText } from './value-matching.ts';
import type { Conjunction, Shape } from './type-constraints.ts';

export interface Keys {
  /** Equal for the same schemas in any order. */
  keyOf(conjunction: Conjunction): string;
  /** Equal for shapes that allow the same, as far as can be told without looking into members. */
  shapeKey(shape: Shape): string;
}

export function createKeys(): Keys {
  const numbers = new Map<object, number>();

  const numberOf = (part: object) => {
    const number = numbers.get(part) ?? numbers.size;
    numbers.set(part, number);
    return number;
  };

  const keyOf = (conjunction: Conjunction) =>
    conjunction
      .map(({ schema }) => (typeof schema === 'object' && schema ? numberOf(schema) : `${schema}`))
      .toSorted()
      .join('+');

  const shapeKey = ({ exclusions, ...shape }: Shape): string => {
    const own =
      shape.type === 'const'
        ? `const ${shape.implicit} ${toCanonicalText(shape.value)}`
        : JSON.stringify(shape, (name, value) => {
            if (name === 'automaton') return value && numberOf(value);
            if (name === 'properties') return [...value].map(([key, all]) => [key, keyOf(all)]);
            if (name === 'prefix') return value.map(keyOf);
            if (name === 'items' || name === 'additional') {
              return typeof value === 'string' ? value : [keyOf(value)];
            }
            return value;
          });
    return `${own} ${exclusions.map(numberOf)}`;
  };

  return { keyOf, shapeKey };
}
