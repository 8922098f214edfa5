// Schema parts that several sections use.

import { Type } from '#lib/schema/schema-builder.ts';

/** A section refuses names that it does not know. */
export const section = { additionalProperties: false } as const;

/** A URL without query, fragment or credentials. */
export const webAddress = '^https?://[^\\s?#@]+$';

/** A string that is null by default. */
export const NullableString = (description: string) =>
  Type.Unsafe<string | null>({
    type: ['string', 'null'],
    minLength: 1,
    default: null,
    description,
  });

/** A string of a given form that is null by default. */
export const NullablePattern = (pattern: string, description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], pattern, default: null, description });
