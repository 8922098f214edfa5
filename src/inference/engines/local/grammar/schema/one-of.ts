// `oneOf` by construction: a branch may be generated only where it can be shown that no value written for
// it also satisfies another branch. What can't be shown is refused, since a grammar can't say "not".

import { intersectAutomata, isEmpty } from '#inference/engines/local/grammar/regex/automaton.ts';
import { type Knowledge, matches } from './value-matching.ts';
import {
  type Conjunction,
  findMember,
  forbidden,
  type NumberShape,
  type ObjectShape,
  type Shape,
  type StringShape,
} from './type-constraints.ts';
import { UnsupportedSchema } from './unsupported-schema.ts';

const proofDepth = 6;

/** The shape, less the optional members by which it could be another branch; undefined if it always is. */
export function applyExclusions(shape: Shape, known: Knowledge): Shape | undefined {
  if (shape.type === 'const') return matches(shape.value, shape, known) ? shape : undefined;
  let narrowed: Shape = shape;
  for (const { shapes, path } of shape.exclusions) {
    for (const other of shapes) {
      if (isApart(narrowed, other, known, 0)) continue;
      const without = withoutTelling(narrowed, other);
      if (!without) {
        throw new UnsupportedSchema(path, 'oneOf', 'has branches that may hold at once');
      }
      narrowed = without;
    }
  }
  return narrowed;
}

/** A value that lacks a member which `other` requires can't satisfy `other`. */
function withoutTelling(shape: Shape, other: Shape): Shape | undefined {
  if (shape.type !== 'object' || other.type !== 'object') return undefined;
  const name = other.required.find((required) => !shape.required.includes(required));
  if (name === undefined) return undefined;
  return { ...shape, properties: new Map([...shape.properties, [name, forbidden]]) };
}

/** Whether no value generated for `shape` satisfies `other`. False also means "don't know". */
function isApart(shape: Shape, other: Shape, known: Knowledge, depth: number): boolean {
  known.spend(50);
  if (shape.type === 'const') return !matches(shape.value, other, known);
  if (other.type === 'const') {
    // Its own exclusions are what is being proven, so they can't be part of the proof.
    return !matches(other.value, { ...shape, exclusions: [] }, known);
  }
  if (shape.type === 'object' && other.type === 'object') {
    return areObjectsApart(shape, other, known, depth);
  }
  if (shape.type === 'number' && other.type === 'number') return areNumbersApart(shape, other);
  if (shape.type === 'string' && other.type === 'string') {
    return areStringsApart(shape, other, known);
  }
  if (shape.type === 'array' && other.type === 'array') {
    if (shape.min > other.max || other.min > shape.max) return true;
    const longest = Math.min(shape.min, Math.max(shape.prefix.length, other.prefix.length) + 1);
    return Array.from({ length: longest }, (_, index) => index).some((index) =>
      areMembersApart(
        shape.prefix[index] ?? shape.items,
        other.prefix[index] ?? other.items,
        known,
        depth,
      ),
    );
  }
  return shape.type !== other.type;
}

/** The same for the values of a member. */
export function areMembersApart(
  a: Conjunction,
  b: Conjunction,
  known: Knowledge,
  depth: number,
): boolean {
  if (depth === proofDepth || a.length === 0 || b.length === 0) return false;
  const others = known.expand(b);
  return known
    .expand(a)
    .every((one) => others.every((other) => isApart(one, other, known, depth + 1)));
}

function areObjectsApart(
  shape: ObjectShape,
  other: ObjectShape,
  known: Knowledge,
  depth: number,
): boolean {
  if (other.required.some((name) => !mayGenerate(shape, name))) return true;
  return shape.required.some((name) => {
    const [own, theirs] = [findMember(shape, name), findMember(other, name)];
    if (!own || !theirs) return true;
    return areMembersApart(own, theirs, known, depth);
  });
}

function mayGenerate(shape: ObjectShape, name: string): boolean {
  if (shape.properties.has(name) || shape.required.includes(name)) {
    return findMember(shape, name) !== undefined;
  }
  return shape.additional !== 'unsaid' && shape.additional !== 'none';
}

function areNumbersApart(a: NumberShape, b: NumberShape): boolean {
  const below = (one: NumberShape, two: NumberShape) =>
    one.max < two.min || (one.max === two.min && (one.belowMax || two.aboveMin));
  return below(a, b) || below(b, a);
}

function areStringsApart(a: StringShape, b: StringShape, known: Knowledge): boolean {
  if (a.min > b.max || b.min > a.max) return true;
  return (
    !!a.automaton &&
    !!b.automaton &&
    isEmpty(intersectAutomata(a.automaton, b.automaton, known.spend))
  );
}
