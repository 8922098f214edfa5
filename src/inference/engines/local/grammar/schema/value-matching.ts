// Whether a given value fits a shape: needed where a schema names values itself (`const`, `enum`) beside
// other keywords, or names them in one branch of a `oneOf`.

import { accepts } from '#inference/engines/local/grammar/regex/automaton.ts';
import type { Spend } from '#inference/engines/local/grammar/rules/rule-builder.ts';
import { type Conjunction, findMember, type Shape } from './type-constraints.ts';

/** What looking into a member's schemas needs. */
export interface Knowledge {
  readonly expand: (conjunction: Conjunction) => readonly Shape[];
  readonly spend: Spend;
}

export function matches(value: unknown, shape: Shape, known: Knowledge): boolean {
  const excluded = shape.exclusions.some(({ shapes }) =>
    shapes.some((other) => matches(value, other, known)),
  );
  return !excluded && fits(value, shape, known);
}

/** Equal for equal JSON values, whatever the order of their members. */
export function toCanonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toCanonicalText).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${toCanonicalText(member)}`)}}`;
}

function fits(value: unknown, shape: Shape, known: Knowledge): boolean {
  const all = (member: unknown, conjunction: Conjunction) =>
    conjunction.length === 0 ||
    known.expand(conjunction).some((one) => matches(member, one, known));
  known.spend(typeof value === 'string' ? 20 + 10 * value.length : 20);
  switch (shape.type) {
    case 'const': {
      const expected = toCanonicalText(shape.value);
      known.spend(10 * expected.length);
      return toCanonicalText(value) === expected;
    }
    case 'null':
      return value === null;
    case 'boolean':
      return typeof value === 'boolean';
    case 'number':
      return (
        typeof value === 'number' &&
        (!shape.integer || Number.isInteger(value)) &&
        (shape.aboveMin ? value > shape.min : value >= shape.min) &&
        (shape.belowMax ? value < shape.max : value <= shape.max)
      );
    case 'string':
      return (
        typeof value === 'string' &&
        within([...value].length, shape) &&
        (!shape.automaton || accepts(shape.automaton, value))
      );
    case 'array':
      return (
        Array.isArray(value) &&
        within(value.length, shape) &&
        value.every((item, index) => all(item, shape.prefix[index] ?? shape.items))
      );
    case 'object': {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
      const members = Object.entries(value);
      return (
        within(members.length, shape) &&
        shape.required.every((name) => Object.hasOwn(value, name)) &&
        members.every(([name, member]) => {
          const conjunction = findMember(shape, name);
          return conjunction !== undefined && all(member, conjunction);
        })
      );
    }
  }
}

function within(count: number, { min, max }: { min: number; max: number }): boolean {
  return count >= min && count <= max;
}
