// Grammar rules for objects: members in the schema's order, each optional one present or not, with commas only between
// members. The grammar is only as long as the schema. Extra members follow the declared ones under other names.

import { allBut } from '#inference/engines/local/grammar/regex/automaton.ts';
import type {
  Conjunction,
  ObjectConstraint,
} from '#inference/engines/local/grammar/schema/type-constraints.ts';
import { UnsupportedSchema } from '#inference/engines/local/grammar/schema/unsupported-schema.ts';
import { choice, type Expression, rule, sequence, text } from './gbnf.ts';
import { type RuleBuilder, spaceRule } from './rule-builder.ts';
import { automatonExpression, inJson } from './strings.ts';

/** llama.cpp follows all members that may come next side by side. 1000 of them cost it 40 ms per token. */
const maxOptionalMembers = 500;

interface ObjectStates {
  readonly rules: RuleBuilder;
  readonly space: Expression;
  readonly members: readonly Member[];
  /** The rule for an extra member; undefined if there may be none. */
  readonly extra: string | undefined;
  readonly min: number;
  readonly max: number;
  /** Counts above this one need not be distinguished. */
  readonly maxCounted: number;
  readonly toValue: (conjunction: Conjunction) => Expression;
  readonly names: Map<string, string>;
  /** States that are named but not defined. */
  readonly queue: [name: string, at: number, count: number][];
}

export function objectExpression(
  rules: RuleBuilder,
  constraint: ObjectConstraint,
  path: string,
  toValue: (conjunction: Conjunction) => Expression,
): Expression {
  const space = spaceRule(rules);
  const extra = extraRule(rules, constraint, toValue);
  const members = orderMembers(constraint);
  const { min } = constraint;
  // Two extra members may have the same name, so only the first one is certain to count.
  if (min > members.length + (extra ? 1 : 0)) {
    throw new UnsupportedSchema(path, 'minProperties', 'asks for more members than have names');
  }
  if (members.filter(({ required }) => !required).length > maxOptionalMembers) {
    throw new UnsupportedSchema(path, 'properties', 'has too many optional members');
  }
  const max = !extra && constraint.max >= members.length ? Infinity : constraint.max;
  const maxCounted = max === Infinity ? Math.max(min, 1) : max;
  const names = new Map<string, string>();
  const states: ObjectStates = {
    rules,
    space,
    members,
    extra,
    min,
    max,
    maxCounted,
    toValue,
    names,
    queue: [],
  };
  const first = stateRule(states, 0, 0);
  for (let next = states.queue.pop(); next; next = states.queue.pop()) {
    const [name, at, count] = next;
    rules.define(name, choice(stateOptions(states, at, count)));
  }
  return sequence(text('{'), first);
}

/** What may follow once the members before `at` are decided and `count` of them are present. */
function stateRule({ rules, names, queue }: ObjectStates, at: number, count: number): Expression {
  const key = `${at} ${count}`;
  const known = names.get(key);
  if (known) return rule(known);
  const name = rules.reserve('object');
  names.set(key, name);
  queue.push([name, at, count]);
  return rule(name);
}

function stateOptions(states: ObjectStates, at: number, count: number): Expression[] {
  const { rules, space, extra, min, max } = states;
  const comma = sequence(text(','), space);
  const separator = count > 0 ? [comma] : [];
  const isFull = count >= max;
  const member = states.members[at];
  if (member) {
    const next = stateRule(states, at + 1, Math.min(count + 1, states.maxCounted));
    const key = text(`${JSON.stringify(member.name)}:`);
    const present = sequence(...separator, key, space, states.toValue(member.value), next);
    return [
      ...(isFull ? [] : [present]),
      ...(member.required ? [] : [stateRule(states, at + 1, count)]),
    ];
  }
  const end = count >= min ? [text('}')] : [];
  if (!extra || isFull || count + 1 < min) return end;
  const more = rules.add('extra', sequence(comma, rule(extra)));
  const rest = rules.repeat(more, 0, max - count - 1);
  return [...end, sequence(...separator, rule(extra), rest, text('}'))];
}

export interface Member {
  readonly name: string;
  readonly value: Conjunction;
  readonly required: boolean;
}

/** The members in the order in which they are written: the schema's order, then those required but not declared. */
export function orderMembers(constraint: ObjectConstraint): Member[] {
  const required = new Set(constraint.required);
  const named = [...constraint.properties].map(([name, value]) => ({
    name,
    value,
    required: required.has(name),
  }));
  const undeclared = constraint.required.filter((name) => !constraint.properties.has(name));
  if (constraint.additional === 'none' && undeclared.length > 0) {
    return [{ name: undeclared[0]!, value: [{ schema: false, path: '' }], required: true }];
  }
  const value = typeof constraint.additional === 'string' ? [] : constraint.additional;
  return [...named, ...undeclared.map((name) => ({ name, value, required: true }))];
}

function extraRule(
  rules: RuleBuilder,
  constraint: ObjectConstraint,
  toValue: (conjunction: Conjunction) => Expression,
): string | undefined {
  if (constraint.additional === 'none' || constraint.additional === 'unsaid') return undefined;
  const value = constraint.additional === 'free' ? [] : constraint.additional;
  const declared = [
    ...new Set([...constraint.properties.keys(), ...constraint.required]),
  ].toSorted();
  const name = rules.shared(`name ${JSON.stringify(declared)}`, 'name', () =>
    sequence(text('"'), automatonExpression(rules, allBut(declared), inJson)),
  );
  return rules.add('extra', sequence(rule(name), text(':'), spaceRule(rules), toValue(value)));
}
