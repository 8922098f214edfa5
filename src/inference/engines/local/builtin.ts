// The model in the repository, as options for the local engine: it stands in for every model that has no
// backend of its own, and says so.

import { fileURLToPath } from 'node:url';
import type { LocalEngineOptions } from '#inference/engines/local/parent/local.ts';

export const builtinModel = {
  name: 'builtin',
  modelPath: fileURLToPath(
    new URL('../../../../model/millrace-builtin-23m-q8_0.gguf', import.meta.url),
  ),
  standIn: true,
  startsText: true,
  // So small a model wanders off at the usual temperature of 1.
  temperature: 0.3,
} as const satisfies Partial<LocalEngineOptions>;
