// The model in the repository, as options for the local engine. It stands in for every model that has no backend, under
// its own name.

import { fileURLToPath } from 'node:url';
import type { LocalEngineOptions } from '#inference/engines/local/parent/local.ts';

export const builtinModel = {
  name: 'builtin',
  modelPath: fileURLToPath(
    new URL('../../../../model/millrace-builtin-23m-q8_0.gguf', import.meta.url),
  ),
  standIn: true,
  startsText: true,
  // At the usual temperature of 1 so small a model loses the thread.
  temperature: 0.3,
} as const satisfies Partial<LocalEngineOptions>;
