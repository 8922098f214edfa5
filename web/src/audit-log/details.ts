// What an event of the audit log changed, in words: the name of the thing, and each value before and after.

import type { AuditEvent } from '#accounts/schema.ts';

type Details = Record<string, unknown>;

export function toDetailsText(
  event: Pick<AuditEvent, 'details' | 'resource_id' | 'resource_name'>,
) {
  const { from, to, ...facts } = event.details;
  const values = toValues(facts);
  // An id of the database says nothing; ids such as `hermes3-8b/vllm` are names.
  const id = /^[0-9a-f]{32}$/.test(event.resource_id ?? '') ? null : event.resource_id;
  const name = event.resource_name ?? id;
  // The details often have the name already.
  const isNamed = name === null || Object.values(values).includes(name);
  const parts = [
    ...(isNamed ? [] : [name]),
    ...Object.entries(values).map(([label, value]) => `${label}: ${value}`),
    ...toChanges(from, to),
  ];
  return parts.join(' · ');
}

/** Only the values that differ. */
function toChanges(from: unknown, to: unknown): string[] {
  if (from === undefined && to === undefined) return [];
  if (!isObject(from) || !isObject(to)) return [`${toText(from)} → ${toText(to)}`];
  const [before, after] = [toValues(from), toValues(to)];
  const labels = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return labels
    .filter((label) => before[label] !== after[label])
    .map((label) => `${label}: ${before[label] ?? 'none'} → ${after[label] ?? 'none'}`);
}

/** Values by label. Nested ones, such as limits, stand beside the others; what is not set is left out. */
function toValues(details: Details): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(details)) {
    if (value === null || name.endsWith('_lrn')) continue;
    if (isObject(value)) Object.assign(values, toValues(value));
    else values[toLabel(name)] = toText(value);
  }
  return values;
}

const toText = (value: unknown): string =>
  Array.isArray(value)
    ? value.map(toText).join(', ')
    : isObject(value)
      ? Object.entries(toValues(value))
          .map(([label, one]) => `${label} ${one}`)
          .join(', ')
      : String(value ?? 'none');

const isObject = (value: unknown): value is Details =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const labels: Record<string, string> = {
  instance_type: 'type',
  monthly_budget: 'monthly budget in $',
  revoked_keys: 'API keys revoked',
  scopes: 'access',
  url: 'address',
};

const toLabel = (name: string) => labels[name] ?? name.replaceAll('_', ' ');
