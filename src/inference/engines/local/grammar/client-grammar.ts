// Compiles a client's grammar to one that llama.cpp can follow without branching: it keeps a stack for each way to read
// the text so far, and a grammar in which they multiply takes it minutes per token, or all memory. Rules without
// recursion become automata. Where rules recurse, the next character must decide.

import {
  type CharRange,
  intersectRanges,
  normalise,
} from '#inference/engines/local/grammar/regex/char-ranges.ts';
import { compileRegex } from '#inference/engines/local/grammar/regex/pattern.ts';
import { PatternError, type Regex } from '#inference/engines/local/grammar/regex/regex.ts';
import {
  charClass,
  choice,
  type Expression,
  rule,
  sequence,
} from '#inference/engines/local/grammar/rules/gbnf.ts';
import {
  createRuleBuilder,
  type RuleBuilder,
} from '#inference/engines/local/grammar/rules/rule-builder.ts';
import {
  asText,
  automatonExpression,
  scalars,
} from '#inference/engines/local/grammar/rules/strings.ts';
import { UnsupportedSchema } from '#inference/engines/local/grammar/schema/unsupported-schema.ts';
import { GrammarError, type Node, parseGbnf, type Rules } from './gbnf-parser.ts';

/** Throws an Error whose message says why the grammar can't be used. */
export function toClientGrammar(source: string): string {
  try {
    const rules = createRuleBuilder();
    const compilation = analyse(parseGbnf(source), rules);
    return rules.render(toRule(compilation, 'root', []));
  } catch (error) {
    if (error instanceof UnsupportedSchema) throw new Error(`the grammar ${error.reason}`);
    if (error instanceof GrammarError || error instanceof PatternError)
      throw new Error(`the grammar ${error.message}`);
    // The only RangeError is a full stack: rules that name themselves by way of others, hundreds deep.
    if (error instanceof RangeError) throw new Error('the grammar is nested too deeply');
    throw error;
  }
}

type Ranges = readonly CharRange[];

interface Compilation {
  readonly sources: Rules;
  /** Names of the rules whose bodies name each rule. */
  readonly users: ReadonlyMap<string, ReadonlySet<string>>;
  readonly rules: RuleBuilder;
  /** Rules that can match nothing. */
  readonly nullable: Set<string>;
  /** Characters with which each rule can begin. */
  readonly first: Map<string, Ranges>;
  /** Rules that neither recurse nor use one that does. */
  readonly regular: Set<string>;
  /** Characters that can come after each rule that is not regular. */
  readonly follow: Map<string, Ranges>;
}

function analyse(sources: Rules, rules: RuleBuilder): Compilation {
  const compilation: Compilation = {
    sources,
    users: findUsers(sources),
    rules,
    nullable: new Set(),
    first: new Map(),
    regular: new Set(),
    follow: new Map(),
  };
  const { users, nullable, first, regular, follow } = compilation;
  const usersOf = (name: string) => users.get(name) ?? [];
  const collect = (names: Set<string>, belongs: typeof isNullable) =>
    untilStable(compilation, (name, body) => {
      if (names.has(name) || !belongs(compilation, body)) return [];
      names.add(name);
      return usersOf(name);
    });
  collect(nullable, isNullable);
  collect(regular, isRegular);
  refuseDeepRules(sources, regular);
  if (!regular.has('root')) refuseManySets(sources);
  untilStable(compilation, (name, body) =>
    addRanges(compilation, first, name, firstOf(compilation, body)) ? usersOf(name) : [],
  );
  untilStable(compilation, (name, body) =>
    regular.has(name) ? [] : passFollow(compilation, body, follow.get(name) ?? []),
  );
  return compilation;
}

/** Rules without recursion are read by a function that calls itself for the rules they name. */
const maxRuleDepth = 1000;

function refuseDeepRules(sources: Rules, regular: ReadonlySet<string>): void {
  const depths = new Map<string, number>();
  // The set has each rule after those that it names.
  for (const name of regular) {
    let depth = 1;
    for (const node of nodesIn([sources.get(name) as Node]))
      if (node.kind === 'rule') depth = Math.max(depth, 1 + (depths.get(node.name) ?? 0));
    if (depth > maxRuleDepth) throw new GrammarError('is nested too deeply');
    depths.set(name, depth);
  }
}

/**
 * Alternatives that are open at once begin with different sets, and each costs llama.cpp a look at all that come after
 * it: 256 of them took a second per token, 3000 took minutes, in which it can't be cancelled. ASCII has 95 characters.
 */
const maxSets = 160;

function refuseManySets(sources: Rules): void {
  const sets = new Set<string>();
  for (const node of nodesIn(sources.values())) {
    if (node.kind === 'set') sets.add(String(node.ranges));
    if (sets.size > maxSets)
      throw new GrammarError(`recurses and has over ${maxSets} different characters and classes`);
  }
}

function findUsers(sources: Rules): ReadonlyMap<string, ReadonlySet<string>> {
  const users = new Map([...sources.keys()].map((name) => [name, new Set<string>()]));
  for (const [user, body] of sources)
    for (const node of nodesIn([body])) if (node.kind === 'rule') users.get(node.name)?.add(user);
  return users;
}

/** The given nodes and all their parts. */
function* nodesIn(roots: Iterable<Node>): Generator<Node> {
  const nodes = [...roots];
  for (let node = nodes.pop(); node !== undefined; node = nodes.pop()) {
    yield node;
    for (const part of partsOf(node)) nodes.push(part);
  }
}

/** Visits each rule, and visits again those whose names a visit returns. */
function untilStable(
  { sources, rules }: Compilation,
  visit: (name: string, body: Node) => Iterable<string>,
): void {
  const queue = new Set(sources.keys());
  for (const name of queue) {
    queue.delete(name);
    rules.spend(10);
    for (const other of visit(name, sources.get(name) as Node)) queue.add(other);
  }
}

/** True if that changed the ranges of `name`. */
function addRanges(
  { rules }: Compilation,
  map: Map<string, Ranges>,
  name: string,
  ranges: Ranges,
): boolean {
  const known = map.get(name) ?? [];
  rules.spend(known.length + ranges.length);
  const joined = normalise([...known, ...ranges]);
  map.set(name, joined);
  return JSON.stringify(joined) !== JSON.stringify(known);
}

function isNullable(compilation: Compilation, node: Node): boolean {
  compilation.rules.spend(1);
  switch (node.kind) {
    case 'set':
      return false;
    case 'rule':
      return compilation.nullable.has(node.name);
    case 'sequence':
      return node.items.every((item) => isNullable(compilation, item));
    case 'choice':
      return node.options.some((option) => isNullable(compilation, option));
    case 'repeat':
      return node.min === 0 || isNullable(compilation, node.item);
  }
}

function isRegular(compilation: Compilation, node: Node): boolean {
  compilation.rules.spend(1);
  if (node.kind === 'set') return true;
  if (node.kind === 'rule') return compilation.regular.has(node.name);
  return partsOf(node).every((part) => isRegular(compilation, part));
}

function partsOf(node: Node): readonly Node[] {
  if (node.kind === 'sequence') return node.items;
  if (node.kind === 'choice') return node.options;
  return node.kind === 'repeat' ? [node.item] : [];
}

function firstOf(compilation: Compilation, node: Node): Ranges {
  const { rules, first } = compilation;
  rules.spend(1);
  if (node.kind === 'set') return node.ranges;
  if (node.kind === 'rule') return first.get(node.name) ?? [];
  if (node.kind === 'repeat') return node.max === 0 ? [] : firstOf(compilation, node.item);
  if (node.kind === 'sequence') {
    const end = node.items.findIndex((item) => !isNullable(compilation, item));
    const reached = end < 0 ? node.items : node.items.slice(0, end + 1);
    return join(
      compilation,
      reached.map((item) => firstOf(compilation, item)),
    );
  }
  return join(
    compilation,
    node.options.map((option) => firstOf(compilation, option)),
  );
}

/** Characters with which the node can begin, and those that follow it if it can be empty. */
function startOf(compilation: Compilation, node: Node, follow: Ranges): Ranges {
  const first = firstOf(compilation, node);
  return isNullable(compilation, node) ? join(compilation, [first, follow]) : first;
}

function join({ rules }: Compilation, all: readonly Ranges[]): Ranges {
  const ranges = all.flat();
  rules.spend(ranges.length);
  return normalise(ranges);
}

/** Adds what follows each rule in `node` that is not regular. Returns the names of rules for which that was new. */
function passFollow(compilation: Compilation, node: Node, follow: Ranges): string[] {
  if (isRegular(compilation, node)) return [];
  switch (node.kind) {
    case 'rule':
      return addRanges(compilation, compilation.follow, node.name, follow) ? [node.name] : [];
    case 'sequence': {
      const after = followsOf(compilation, node.items, follow);
      return node.items.flatMap((item, at) => passFollow(compilation, item, after[at] as Ranges));
    }
    case 'repeat':
      return passFollow(compilation, node.item, afterItem(compilation, node, follow));
    default:
      return partsOf(node).flatMap((part) => passFollow(compilation, part, follow));
  }
}

/** What comes after each item of a sequence that is followed by `follow`. */
function followsOf(compilation: Compilation, items: readonly Node[], follow: Ranges): Ranges[] {
  const follows: Ranges[] = [];
  let after = follow;
  for (const item of items.toReversed()) {
    follows.push(after);
    after = startOf(compilation, item, after);
  }
  return follows.reverse();
}

/** What comes after one item of a repetition: another one, or what follows the repetition. */
function afterItem(
  compilation: Compilation,
  { item, max }: Node & { kind: 'repeat' },
  follow: Ranges,
): Ranges {
  return max <= 1 ? follow : join(compilation, [firstOf(compilation, item), follow]);
}

/** The name of the rule's own rule. `follow` is what comes after it in this place. */
function toRule(compilation: Compilation, name: string, follow: Ranges): string {
  const { rules, sources, regular } = compilation;
  const body = sources.get(name) as Node;
  if (regular.has(name)) return rules.add('part', toExpression(compilation, body, follow));
  return rules.shared(`rule ${name}`, 'rule', () =>
    toExpression(compilation, body, compilation.follow.get(name) ?? []),
  );
}

function toExpression(compilation: Compilation, node: Node, follow: Ranges): Expression {
  const { rules } = compilation;
  rules.spend(1);
  if (isRegular(compilation, node)) return toAutomaton(compilation, node, follow);
  switch (node.kind) {
    case 'rule':
      return rule(toRule(compilation, node.name, follow));
    case 'sequence':
      return toSequence(compilation, node.items, follow);
    case 'choice':
      refuseOverlap(
        compilation,
        node.options.map((option) => startOf(compilation, option, follow)),
      );
      if (node.options.filter((option) => isNullable(compilation, option)).length > 1)
        throw ambiguous('two alternatives can be empty');
      return choice(node.options.map((option) => toExpression(compilation, option, follow)));
    case 'repeat': {
      const start = firstOf(compilation, node.item);
      if (isNullable(compilation, node.item)) throw ambiguous('it repeats what can be empty');
      if (node.min !== node.max) refuseOverlap(compilation, [start, follow]);
      const after = afterItem(compilation, node, follow);
      const item = rules.add('item', toExpression(compilation, node.item, after));
      return rules.repeat(item, node.min, node.max);
    }
    default:
      throw new Error('a set is regular');
  }
}

/** Neighbours without recursion are read as one. */
function toSequence(compilation: Compilation, items: readonly Node[], follow: Ranges): Expression {
  const groups: { isRegular: boolean; items: Node[] }[] = [];
  for (const item of items) {
    const last = groups.at(-1);
    const own = isRegular(compilation, item);
    if (own && last?.isRegular) last.items.push(item);
    else groups.push({ isRegular: own, items: [item] });
  }
  const nodes = groups.map(
    ({ items: [one, ...more] }): Node =>
      more.length === 0 ? (one as Node) : { kind: 'sequence', items: [one as Node, ...more] },
  );
  const after = followsOf(compilation, nodes, follow);
  return sequence(
    ...nodes.map((node, index) => toExpression(compilation, node, after[index] as Ranges)),
  );
}

function toAutomaton(compilation: Compilation, node: Node, follow: Ranges): Expression {
  const { rules } = compilation;
  if (node.kind === 'set') return charClass(intersectRanges(node.ranges, scalars));
  const automaton = compileRegex(toRegex(compilation, node, { nodes: 0 }), rules.spend);
  for (const { accepting, edges } of automaton)
    if (accepting) refuseOverlap(compilation, [edges.flatMap(({ ranges }) => ranges), follow]);
  return automatonExpression(rules, automaton, asText);
}

const maxNodes = 20_000;

function toRegex(compilation: Compilation, node: Node, size: { nodes: number }): Regex {
  compilation.rules.spend(1);
  if (++size.nodes > maxNodes) throw new GrammarError('is too complex');
  const inner = (part: Node) => toRegex(compilation, part, size);
  if (node.kind === 'rule') return inner(compilation.sources.get(node.name) as Node);
  if (node.kind === 'sequence') return { kind: 'sequence', items: node.items.map(inner) };
  if (node.kind === 'choice') return { kind: 'choice', options: node.options.map(inner) };
  return node.kind === 'repeat' ? { ...node, item: inner(node.item) } : node;
}

/** Throws if a character is in more than one of the sets. */
function refuseOverlap({ rules }: Compilation, sets: readonly Ranges[]): void {
  const sorted = sets.flat().toSorted(([a], [b]) => a - b);
  rules.spend(sorted.length);
  let end = -1;
  for (const [first, last] of sorted) {
    if (first <= end)
      throw ambiguous(`both go on with ${JSON.stringify(String.fromCodePoint(first))}`);
    end = last;
  }
}

const ambiguous = (why: string) =>
  new GrammarError(
    `recurses where two ways to read the text stay open (${why}). Write it so that the next character decides`,
  );
