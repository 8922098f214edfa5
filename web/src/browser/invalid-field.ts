// What a browser finds wrong with a field before a form is sent, in the words of the server's errors. Replaces the
// browser's own bubble.

import { explainPattern } from '#lib/schema/pattern-words.ts';
import { FieldProblem } from '../field-errors.ts';

type Field = HTMLInputElement | HTMLTextAreaElement;

/** What is wrong with the first invalid field. Undefined if all are valid, or if that field has no name. */
export function findProblem(form: HTMLFormElement): FieldProblem | undefined {
  const first = form.querySelector<Field>('input:invalid, textarea:invalid');
  return first?.name ? new FieldProblem(first.name, toText(first)) : undefined;
}

function toText(field: Field): string {
  const { validity, type } = field;
  const { min, max, pattern } = field as HTMLInputElement;
  if (validity.badInput) return type === 'date' ? 'Enter a date.' : 'Enter a number.';
  if (validity.valueMissing) return 'This is required.';
  if (validity.tooShort) return `Use at least ${field.minLength} characters.`;
  if (validity.tooLong) return `Use at most ${field.maxLength} characters.`;
  if (validity.rangeUnderflow) return `This must be at least ${min}.`;
  if (validity.rangeOverflow) return `This must be at most ${max}.`;
  if (validity.stepMismatch) return 'Enter a whole number.';
  if (validity.patternMismatch) return `This must ${explainPattern(`^${pattern}$`)}.`;
  if (validity.typeMismatch && type === 'email')
    return 'Enter an email address such as ann@example.com.';
  if (validity.typeMismatch && type === 'url')
    return 'Enter an address that starts with http:// or https://.';
  return field.validationMessage;
}
