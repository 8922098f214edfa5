// Objects: members in the schema's order, each optional one there or not, commas only between members,
// and the grammar only as long as the schema. Extra members follow the declared ones under other names.

import { allBut } from '#inference/engines/local/grammar/regex/automaton.ts';
import type {
  Conjunction,
  ObjectConstraint,
} from '#inference/engines/local/grammar/schema/type-constraints.ts';
import { UnsupportedSchema } from '#inference/engines/local/grammar/schema/unsupported-schema.ts';
import { choice, type Expression, rule, sequence, text } from './gbnf.ts';
import type { RuleBuilder } from './rule-builder.ts';
import { automatonExpression } from './strings.ts';

/** llama.cpp follows every member that may come next side by side; 1000 of them cost it 40 ms a token. */
const maxOptionalMembers = 500;

/** At most one space where people put one; more would let a weak model write spaces for ever. */
export function spaceRule(rules: RuleBuilder): Expression {
  const space = rules.shared('space', 'space', () => text(' '));
  return rules.repeat(space, 0, 1);
}

export function objectExpression(
  rules: RuleBuilder,
  constraint: ObjectConstraint,
  path: string,
  toValue: (conjunction: Conjunction) => Expression,
): Expression {
  const space = spaceRule(rules);
  const comma = sequence(text(','), space);
  const extra = extraRule(rules, constraint, toValue);
  const members = orderMembers(constraint);
  // Two extra members may turn out to have one name, so only the first is sure to count.
  const sure = members.length + (extra ? 1 : 0);
  if (constraint.min > sure) {
    throw new UnsupportedSchema(path, 'minProperties', 'asks for more members than have names');
  }
  if (members.filter(({ required }) => !required).length > maxOptionalMembers) {
    throw new UnsupportedSchema(path, 'properties', 'has too many optional members');
  }
  const max = !extra && constraint.max >= members.length ? Infinity : constraint.max;
  const counted = max === Infinity ? Math.max(constraint.min, 1) : max;
  const states = new Map<string, string>();

  // What may follow once the members before `at` are decided and `count` of them are there.
  const state = (at: number, count: number): Expression => {
    const key = `${at} ${count}`;
    const known = states.get(key);
    if (known) return rule(known);
    const name = rules.reserve('object');
    states.set(key, name);
    queue.push([name, at, count]);
    return rule(name);
  };
  const optionsOf = (at: number, count: number): Expression[] => {
    const separator = count > 0 ? [comma] : [];
    const full = count >= max;
    const member = members[at];
    if (member) {
      const next = state(at + 1, Math.min(count + 1, counted));
      const key = text(`${JSON.stringify(member.name)}:`);
      const present = sequence(...separator, key, space, toValue(member.value), next);
      return [...(full ? [] : [present]), ...(member.required ? [] : [state(at + 1, count)])];
    }
    const end = count >= constraint.min ? [text('}')] : [];
    if (!extra || full) return end;
    if (count + 1 < constraint.min) return end;
    const more = rules.add('extra', sequence(comma, rule(extra)));
    const rest = rules.repeat(more, 0, max - count - 1);
    return [...end, sequence(...separator, rule(extra), rest, text('}'))];
  };

  const queue: [name: string, at: number, count: number][] = [];
  const first = state(0, 0);
  for (let next = queue.pop(); next; next = queue.pop()) {
    const [name, at, count] = next;
    rules.define(name, choice(optionsOf(at, count)));
  }
  return sequence(text('{'), first);
}

/** As they are written: the schema's order, then what is required but not described. */
export function orderMembers(constraint: ObjectConstraint) {
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
    sequence(text('"'), automatonExpression(rules, allBut(declared))),
  );
  return rules.add('extra', sequence(rule(name), text(':'), spaceRule(rules), toValue(value)));
}
