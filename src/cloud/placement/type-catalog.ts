// The public catalog of instance types, in the order that clients know: one of them walks it backwards to
// prefer later entries. Prices are cents per hour as of 2026-08, or the last known price before that.

export interface CatalogType {
  readonly name: string;
  /** The description of the GPU, without the leading count. */
  readonly gpu: string;
  readonly vcpus: number;
  readonly memoryGib: number;
  readonly storageGib: number;
  readonly gpus: number;
  readonly cents: number;
}

const columns = (
  name: string,
  gpu: string,
  [gpus, vcpus, memoryGib, storageGib, cents]: [number, number, number, number, number],
): CatalogType => ({ name, gpu, vcpus, memoryGib, storageGib, gpus, cents });

export const typeCatalog: readonly CatalogType[] = [
  columns('gpu_1x_gh200', 'GH200 (96 GB)', [1, 64, 432, 4096, 229]),
  columns('gpu_8x_b200_sxm6', 'B200 (180 GB SXM6)', [8, 208, 2900, 22528, 5352]),
  columns('gpu_4x_b200_sxm6', 'B200 (180 GB SXM6)', [4, 104, 1440, 11264, 2716]),
  columns('gpu_2x_b200_sxm6', 'B200 (180 GB SXM6)', [2, 52, 720, 5632, 1378]),
  columns('gpu_1x_b200_sxm6', 'B200 (180 GB SXM6)', [1, 26, 360, 2816, 699]),
  columns('gpu_8x_h100_sxm5', 'H100 (80 GB SXM5)', [8, 208, 1800, 22528, 3192]),
  columns('gpu_4x_h100_sxm5', 'H100 (80 GB SXM5)', [4, 104, 900, 11264, 1636]),
  columns('gpu_2x_h100_sxm5', 'H100 (80 GB SXM5)', [2, 52, 450, 5632, 838]),
  columns('gpu_1x_h100_sxm5', 'H100 (80 GB SXM5)', [1, 26, 225, 2816, 429]),
  columns('gpu_1x_h100_pcie', 'H100 (80 GB PCIe)', [1, 26, 200, 1024, 329]),
  columns('gpu_8x_a100_80gb_sxm4', 'A100 (80 GB SXM4)', [8, 240, 1800, 20480, 2232]),
  columns('gpu_1x_a10', 'A10 (24 GB PCIe)', [1, 30, 200, 1400, 129]),
  columns('gpu_1x_rtx6000', 'RTX 6000 (24 GB)', [1, 14, 46, 512, 69]),
  columns('gpu_1x_a100', 'A100 (40 GB PCIe)', [1, 30, 200, 512, 199]),
  columns('gpu_1x_a100_sxm4', 'A100 (40 GB SXM4)', [1, 30, 200, 512, 199]),
  columns('gpu_2x_a100', 'A100 (40 GB PCIe)', [2, 60, 400, 1024, 398]),
  columns('gpu_4x_a100', 'A100 (40 GB PCIe)', [4, 120, 800, 1024, 796]),
  columns('gpu_8x_a100', 'A100 (40 GB SXM4)', [8, 124, 1800, 6144, 1592]),
  columns('gpu_1x_a6000', 'A6000 (48 GB)', [1, 14, 100, 200, 109]),
  columns('gpu_2x_a6000', 'A6000 (48 GB)', [2, 28, 200, 1024, 218]),
  columns('gpu_4x_a6000', 'A6000 (48 GB)', [4, 56, 400, 1024, 436]),
  columns('gpu_8x_v100', 'Tesla V100 (16 GB)', [8, 92, 448, 6041, 632]),
  columns('gpu_8x_v100_n', 'Tesla V100 (16 GB)', [8, 88, 448, 6041, 632]),
  columns('cpu_4x_general', 'CPU General (16 GiB)', [0, 4, 16, 100, 20]),
];

/** The catalog's names of GPU models, by the name that the vendor's tool prints. Other names are derived. */
export const catalogModels: readonly (readonly [RegExp, string])[] = [
  [/^H100 80GB HBM3$/, 'h100_sxm5'],
  [/^H100 PCIe$/, 'h100_pcie'],
  [/^A100-SXM4-80GB$/, 'a100_80gb_sxm4'],
  [/^A100-SXM4-40GB$/, 'a100_sxm4'],
  [/^A100-PCIE-40GB$/, 'a100'],
  [/^RTX A6000$/, 'a6000'],
  [/^Quadro RTX 6000$/, 'rtx6000'],
  [/^GH200\b.*$/, 'gh200'],
  [/^B200$/, 'b200_sxm6'],
];

/** Cents per hour of one GPU whose type is not in the catalog, by family: the first pattern that matches decides. */
const familyCents: readonly (readonly [RegExp, number])[] = [
  [/\bG?B300\b/, 799],
  [/\bG?B200\b/, 699],
  [/\bB100\b/, 599],
  [/\bGH200\b/, 229],
  [/\bH200\b/, 479],
  [/\bH[18]00\b.*(PCIe|NVL)/i, 329],
  [/\bH[18]00\b/, 429],
  [/\bMI3\d\dX?\b/, 349],
  [/\bA[18]00\b.*80GB/i, 279],
  [/\bA[18]00\b/, 199],
  [/\bRTX PRO 6000\b/, 189],
  [/\bL40S\b/, 159],
  [/\bA10G?\b/, 129],
  [/\bL40\b|\b6000 Ada\b/i, 139],
  [/\bA40\b|\bA6000\b/, 109],
  [/\bL4\b/, 79],
  [/\bV100\b/, 79],
  [/\bT4\b/, 49],
];

/** Cents per hour and GiB of memory of a GPU of an unknown family: about what the catalog's cards cost. */
const centsPerGib = 3;

/** A MIG slice costs its share of a GPU's seven slices. */
export function toGpuCents(model: string, memoryGib: number): number {
  const slices = Number(/ MIG (\d)g\./.exec(model)?.[1] ?? 7);
  const family = familyCents.find(([pattern]) => pattern.test(model))?.[1];
  if (family === undefined) return Math.max(10, Math.round(memoryGib * centsPerGib));
  return Math.ceil((family * slices) / 7);
}
