// Whether a given value fits a constraint: needed where a schema names values itself (`const`, `enum`) beside
// other keywords, or names them in one branch of a `oneOf`.

import { accepts } from '#inference/engines/local/grammar/regex/automaton.ts';
import type { Spend } from '#inference/engines/local/grammar/work-budget.ts';
import { type Conjunction, findMember, type TypeConstraint } from './type-constraints.ts';

/** What looking into a member's schemas needs. */
export interface MatchingContext {
  readonly expand: (conjunction: Conjunction) => readonly TypeConstraint[];
  readonly spend: Spend;
}

export function matches(
  value: unknown,
  constraint: TypeConstraint,
  matching: MatchingContext,
): boolean {
  const excluded = constraint.exclusions.some(({ constraints }) =>
    constraints.some((other) => matches(value, other, matching)),
  );
  return !excluded && fits(value, constraint, matching);
}

/** Equal for equal JSON values, whatever the order of their members. */
export function toCanonicalText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toCanonicalText).join()}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${toCanonicalText(member)}`)}}`;
}

function fits(value: unknown, constraint: TypeConstraint, matching: MatchingContext): boolean {
  const all = (member: unknown, conjunction: Conjunction) =>
    conjunction.length === 0 ||
    matching.expand(conjunction).some((one) => matches(member, one, matching));
  matching.spend(typeof value === 'string' ? 20 + 10 * value.length : 20);
  switch (constraint.type) {
    case 'const': {
      const expected = toCanonicalText(constraint.value);
      matching.spend(10 * expected.length);
      return toCanonicalText(value) === expected;
    }
    case 'null':
      return value === null;
    case 'boolean':
      return typeof value === 'boolean';
    case 'number':
      return (
        typeof value === 'number' &&
        (!constraint.integer || Number.isInteger(value)) &&
        (constraint.aboveMin ? value > constraint.min : value >= constraint.min) &&
        (constraint.belowMax ? value < constraint.max : value <= constraint.max)
      );
    case 'string':
      return (
        typeof value === 'string' &&
        within([...value].length, constraint) &&
        (!constraint.automaton || accepts(constraint.automaton, value))
      );
    case 'array':
      return (
        Array.isArray(value) &&
        within(value.length, constraint) &&
        value.every((item, index) => all(item, constraint.prefix[index] ?? constraint.items))
      );
    case 'object': {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
      const members = Object.entries(value);
      return (
        within(members.length, constraint) &&
        constraint.required.every((name) => Object.hasOwn(value, name)) &&
        members.every(([name, member]) => {
          const conjunction = findMember(constraint, name);
          return conjunction !== undefined && all(member, conjunction);
        })
      );
    }
  }
}

function within(count: number, { min, max }: { min: number; max: number }): boolean {
  return count >= min && count <= max;
}
