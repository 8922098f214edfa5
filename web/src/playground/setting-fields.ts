// The numbers that a chat request can set, with the bounds of the API. A value outside is reported, never changed.

import type { Sampling } from '#accounts/conversations/schema.ts';

export interface SettingField {
  name: Exclude<keyof Sampling, 'stop'>;
  label: string;
  min?: number;
  max?: number;
  step: number;
}

export const settingFields: SettingField[] = [
  { name: 'temperature', label: 'Temperature', min: 0, max: 2, step: 0.1 },
  { name: 'max_tokens', label: 'Max tokens', min: 1, step: 1 },
  { name: 'top_p', label: 'Top p', min: 0, max: 1, step: 0.05 },
  { name: 'top_k', label: 'Top k', min: -1, max: 1_000_000, step: 1 },
  { name: 'min_p', label: 'Min p', min: 0, max: 1, step: 0.05 },
  { name: 'seed', label: 'Seed', step: 1 },
  { name: 'frequency_penalty', label: 'Frequency penalty', min: -2, max: 2, step: 0.1 },
  { name: 'presence_penalty', label: 'Presence penalty', min: -2, max: 2, step: 0.1 },
  { name: 'repetition_penalty', label: 'Repetition penalty', min: 0.01, max: 10, step: 0.05 },
];

/** Why the API would reject the value; null if it would not. */
export function findSettingError(
  field: SettingField,
  value: number | null | undefined,
): string | null {
  const { label, min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = field;
  if (value == null || (value >= min && value <= max)) return null;
  const allowed =
    max === Number.POSITIVE_INFINITY ? `at least ${min}` : `between ${min} and ${max}`;
  return `${label} must be ${allowed}, got ${value}.`;
}
