// Converts the `inference` section of the configuration into options of the models on this computer.

import { totalmem } from 'node:os';
import type { Config } from '#config/schema.ts';
import { builtinModel } from '#inference/engines/local/builtin.ts';

export function toStandIn({ inference }: Config) {
  if (inference.stand_in === null) return builtinModel;
  return { name: 'stand-in', modelPath: inference.stand_in, standIn: true };
}

/** Bytes for all local models together. */
export const toMemoryLimit = ({ inference }: Config) =>
  inference.memory_limit_gib === null ? totalmem() * 0.75 : inference.memory_limit_gib * 2 ** 30;
