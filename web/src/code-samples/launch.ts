// A launch as code to paste and run, in each language.

import type { Launch } from '#cloud/schema.ts';
import type { Language } from './chat.ts';
import { toPostCode } from './post.ts';

/** Without a key the code reads it from the environment. */
export const toLaunchCode = (
  address: string,
  launch: Launch,
  key: string | null = null,
): Record<Language, string> =>
  toPostCode(`${address}/api/v1/instance-operations/launch`, launch, key);
