// How many layers of a model fit on the GPU: llama.cpp lays the model and its context out without allocating them, and
// says how much memory they would take.

import type { ContextParameters, Native } from './native.ts';

/** Memory that stays free, because the estimate is not exact: 8 % of the GPU's, at most 1.6 GiB. */
const toReserve = (totalBytes: number) => Math.min(totalBytes * 0.08, 1.6 * 2 ** 30);

/** Returns the largest number up to `layers` that fits beside what the GPU holds already. */
export async function countGpuLayers(
  native: Native,
  path: string,
  { layers, parameters }: { layers: number; parameters: ContextParameters },
): Promise<number> {
  const { total, used } = native.getGpuVramInfo();
  const freeBytes = total - used - toReserve(total);
  const fits = async (count: number) =>
    (await measure(native, path, { gpuLayers: count, parameters })) <= freeBytes;
  if (await fits(layers)) return layers;
  let [low, high] = [0, layers];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (await fits(middle)) low = middle;
    else high = middle;
  }
  return low;
}

/** Bytes on the GPU. What can't be laid out does not fit. */
async function measure(
  native: Native,
  path: string,
  { gpuLayers, parameters }: { gpuLayers: number; parameters: ContextParameters },
): Promise<number> {
  const model = new native.AddonModel(path, { gpuLayers, useMmap: true, noAlloc: true });
  try {
    if (!(await model.init())) return Infinity;
    const context = new native.AddonContext(model, parameters);
    try {
      if (!(await context.init())) return Infinity;
      return model.getMemoryBreakdown().gpuVram + context.getMemoryBreakdown().gpuVram;
    } finally {
      await context.dispose();
    }
  } finally {
    await model.dispose();
  }
}
