// Grammar rules for numbers within bounds, digit by digit: while the digits so far equal those of a bound, the bound
// limits the next digit; after that any digit may follow. Numbers have at most 15 significant digits, so that a double
// holds exactly what is written and a strict bound stays strict.

import type { NumberConstraint } from '#inference/engines/local/grammar/schema/type-constraints.ts';
import { charClass, choice, type Expression, rule, sequence, text } from './gbnf.ts';
import type { RuleBuilder } from './rule-builder.ts';

const maxDigits = 15;
const minFractionDigits = 6;

/** The largest absolute value of a bound and of a generated number. */
export const maxMagnitude = 10 ** maxDigits - 1;

export function numberExpression(rules: RuleBuilder, constraint: NumberConstraint): Expression {
  const unbounded = constraint.min <= -maxMagnitude && constraint.max >= maxMagnitude;
  if (unbounded && constraint.integer) return rule(anyInteger(rules));
  if (constraint.min === -Infinity && constraint.max === Infinity) return rule(anyNumber(rules));
  const options: Expression[] = [];
  const { min, max, aboveMin, belowMax } = constraint.integer ? toIntegers(constraint) : constraint;
  if (max >= 0) {
    const low = min >= 0 ? { value: min, strict: aboveMin } : { value: 0, strict: false };
    options.push(...magnitudes(rules, constraint.integer, low, { value: max, strict: belowMax }));
  }
  if (min < 0) {
    const low = max < 0 ? { value: -max, strict: belowMax } : { value: 0, strict: true };
    const negative = magnitudes(rules, constraint.integer, low, { value: -min, strict: aboveMin });
    options.push(...negative.map((option) => sequence(text('-'), option)));
  }
  return choice(options);
}

const digitRule = (rules: RuleBuilder) => rules.shared('digit', 'digit', () => digits(0, 9));

function anyInteger(rules: RuleBuilder): string {
  return rules.shared('integer', 'integer', () => {
    const sign = rules.repeat(rules.add('sign', text('-')), 0, 1);
    const more = rules.repeat(digitRule(rules), 0, maxDigits - 1);
    return choice([text('0'), sequence(sign, digits(1, 9), more)]);
  });
}

function anyNumber(rules: RuleBuilder): string {
  return rules.shared('number', 'number', () => {
    const digit = digitRule(rules);
    const whole = rules.add(
      'whole',
      choice([
        text('0'),
        sequence(charClass([[0x31, 0x39]]), rules.repeat(digit, 0, maxDigits - 1)),
      ]),
    );
    const sign = rules.add('sign', text('-'));
    const fraction = rules.add('fraction', sequence(text('.'), rules.repeat(digit, 1, maxDigits)));
    const exponent = rules.add(
      'exponent',
      sequence(
        charClass([
          [0x45, 0x45],
          [0x65, 0x65],
        ]),
        choice([text('+'), text('-'), text('')]),
        rules.repeat(digit, 1, 2),
      ),
    );
    return sequence(
      rules.repeat(sign, 0, 1),
      rule(whole),
      rules.repeat(fraction, 0, 1),
      rules.repeat(exponent, 0, 1),
    );
  });
}

function toIntegers({ min, max, aboveMin, belowMax }: NumberConstraint) {
  const low = Math.ceil(min);
  const high = Math.floor(max);
  return {
    min: aboveMin && low === min ? low + 1 : low,
    max: belowMax && high === max ? high - 1 : high,
    aboveMin: false,
    belowMax: false,
  };
}

interface Bound {
  readonly value: number;
  readonly strict: boolean;
}

/** Non-negative numbers between two bounds, one option for each number of digits before the point. */
function magnitudes(rules: RuleBuilder, integer: boolean, low: Bound, high: Bound): Expression[] {
  if (low.value > maxMagnitude || low.value > high.value) return [];
  const from = toDecimal(low.value);
  const to = high.value > maxMagnitude ? null : toDecimal(high.value);
  const longest = to ? to.whole.length : maxDigits;
  const options: Expression[] = [];
  for (let length = from.whole.length; length <= longest; length++) {
    const fraction = integer
      ? 0
      : Math.min(
          maxDigits - length,
          Math.max(minFractionDigits, from.fraction.length + 1, (to?.fraction.length ?? 0) + 1),
        );
    const least =
      length === from.whole.length
        ? { digits: from.whole + from.fraction, strict: low.strict }
        : { digits: `1${'0'.repeat(length - 1)}`, strict: false };
    const most =
      to && length === longest ? { digits: to.whole + to.fraction, strict: high.strict } : null;
    const name = walk({ rules, length, fraction, least, most, names: new Map() }, 0, true, !!most);
    if (name) options.push(rule(name));
  }
  return options;
}

interface Walk {
  readonly rules: RuleBuilder;
  /** Digits before the point. */
  readonly length: number;
  /** Maximum digits after the point. */
  readonly fraction: number;
  readonly least: { readonly digits: string; readonly strict: boolean };
  readonly most: { readonly digits: string; readonly strict: boolean } | null;
  readonly names: Map<string, string | null>;
}

/** The rule for what may follow `at` digits; null if nothing can. */
function walk(on: Walk, at: number, atLeast: boolean, atMost: boolean): string | null {
  if (!atLeast && !atMost) return anyDigits(on.rules, on.length - at, on.fraction);
  const key = `${at} ${atLeast} ${atMost}`;
  const known = on.names.get(key);
  if (known !== undefined) return known;
  const options: Expression[] = [];
  if (at >= on.length && mayEnd(on, at, atLeast, atMost)) options.push(text(''));
  if (at < on.length + on.fraction) {
    const point = at === on.length ? [text('.')] : [];
    const low = atLeast ? Number(on.least.digits[at] ?? 0) : 0;
    const high = atMost ? Number(on.most!.digits[at] ?? 0) : 9;
    const step = (first: number, last: number, staysLow: boolean, staysHigh: boolean) => {
      if (first > last) return;
      const next = walk(on, at + 1, staysLow, staysHigh);
      if (!next) return;
      const digit = first === last ? text(String(first)) : digits(first, last);
      options.push(sequence(...point, digit, rule(next)));
    };
    if (atLeast && atMost && low === high) step(low, low, true, true);
    else {
      if (atLeast) step(low, low, true, false);
      step(atLeast ? low + 1 : 0, atMost ? high - 1 : 9, false, false);
      if (atMost) step(high, high, false, true);
    }
  }
  const name = options.length > 0 ? on.rules.add('digits', choice(options)) : null;
  on.names.set(key, name);
  return name;
}

/** What follows where no bound applies: `whole` more digits before the point, then digits after it. */
function anyDigits(rules: RuleBuilder, whole: number, fraction: number): string {
  return rules.shared(`digits ${whole} ${fraction}`, 'digits', () => {
    const digit = digitRule(rules);
    if (whole < 0) return rules.repeat(digit, 0, fraction + whole);
    const before = whole > 0 ? [rules.repeat(digit, whole, whole)] : [];
    if (fraction === 0) return sequence(...before, text(''));
    const after = rules.add('fraction', sequence(text('.'), rules.repeat(digit, 1, fraction)));
    return sequence(...before, rules.repeat(after, 0, 1));
  });
}

/** True if the number may end after `at` digits, which means that only zeros would follow. */
function mayEnd({ least, most }: Walk, at: number, atLeast: boolean, atMost: boolean): boolean {
  const zeros = (rest: string) => /^0*$/.test(rest);
  if (atLeast && (!zeros(least.digits.slice(at)) || least.strict)) return false;
  return !(atMost && most!.strict && zeros(most!.digits.slice(at)));
}

const digits = (first: number, last: number) => charClass([[0x30 + first, 0x30 + last]]);

/** `1.5e-7` as `0` and `00000015`. */
function toDecimal(value: number): { whole: string; fraction: string } {
  const [mantissa, exponent = '0'] = String(value).split('e');
  const [whole = '0', fraction = ''] = mantissa!.split('.');
  const shift = Number(exponent);
  if (shift >= 0) {
    const padded = fraction.padEnd(shift, '0');
    return { whole: whole + padded.slice(0, shift), fraction: padded.slice(shift) };
  }
  const padded = whole.padStart(1 - shift, '0');
  return { whole: padded.slice(0, shift) || '0', fraction: padded.slice(shift) + fraction };
}
