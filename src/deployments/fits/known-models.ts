// Well-known open models: what is needed to compute their memory before their files are here, and their licences. Only
// data.

export interface KnownModel {
  /** Repository on the hub. */
  readonly repository: string;
  /** Billions of parameters. */
  readonly billions: number;
  readonly layers: number;
  /** Values that the KV cache has for each token and layer: keys and values of all heads together. */
  readonly cacheWidth: number;
  /** In tokens. */
  readonly contextWindow: number;
  readonly licence: string;
  /** Bytes of the published weights, if they are not 16 bits per parameter. */
  readonly weightBytes?: number;
}

/** Heads that keys and values have, and the size of each. */
type Heads = readonly [count: number, size: number];

const model = (
  repository: string,
  billions: number,
  [layers, [heads, size]]: readonly [layers: number, heads: Heads],
  contextWindow: number,
  licence: string,
): KnownModel => ({
  repository,
  billions,
  layers,
  cacheWidth: 2 * heads * size,
  contextWindow,
  licence,
});

const apache = 'Apache-2.0';
const llama31 = 'Llama 3.1 Community License';
const gemma = 'Gemma Terms of Use';
const gib = 2 ** 30;

const llama8b = [32, [8, 128]] as const;
const llama70b = [80, [8, 128]] as const;
const llama405b = [126, [8, 128]] as const;
const qwen7b = [28, [4, 128]] as const;
const qwen32b = [64, [8, 128]] as const;

export const knownModels: readonly KnownModel[] = [
  model('meta-llama/Llama-3.1-8B-Instruct', 8.03, llama8b, 131_072, llama31),
  model('meta-llama/Llama-3.1-70B-Instruct', 70.6, llama70b, 131_072, llama31),
  model('meta-llama/Llama-3.1-405B-Instruct', 405.9, llama405b, 131_072, llama31),
  model(
    'meta-llama/Llama-3.2-1B-Instruct',
    1.24,
    [16, [8, 64]],
    131_072,
    'Llama 3.2 Community License',
  ),
  model(
    'meta-llama/Llama-3.2-3B-Instruct',
    3.21,
    [28, [8, 128]],
    131_072,
    'Llama 3.2 Community License',
  ),
  model(
    'meta-llama/Llama-3.3-70B-Instruct',
    70.6,
    llama70b,
    131_072,
    'Llama 3.3 Community License',
  ),
  model('NousResearch/Hermes-3-Llama-3.1-8B', 8.03, llama8b, 131_072, llama31),
  model('NousResearch/Hermes-3-Llama-3.1-70B', 70.6, llama70b, 131_072, llama31),
  model('NousResearch/Hermes-3-Llama-3.1-405B', 405.9, llama405b, 131_072, llama31),
  model('Qwen/Qwen2.5-0.5B-Instruct', 0.49, [24, [2, 64]], 32_768, apache),
  model('Qwen/Qwen2.5-1.5B-Instruct', 1.54, [28, [2, 128]], 32_768, apache),
  model('Qwen/Qwen2.5-7B-Instruct', 7.62, qwen7b, 32_768, apache),
  model('Qwen/Qwen2.5-14B-Instruct', 14.8, [48, [8, 128]], 32_768, apache),
  model('Qwen/Qwen2.5-32B-Instruct', 32.8, qwen32b, 32_768, apache),
  model('Qwen/Qwen2.5-72B-Instruct', 72.7, [80, [8, 128]], 32_768, 'Qwen License'),
  model('Qwen/Qwen3-4B', 4.02, [36, [8, 128]], 40_960, apache),
  model('Qwen/Qwen3-8B', 8.19, [36, [8, 128]], 40_960, apache),
  model('Qwen/Qwen3-14B', 14.8, [40, [8, 128]], 40_960, apache),
  model('Qwen/Qwen3-32B', 32.8, qwen32b, 40_960, apache),
  model('Qwen/Qwen3-30B-A3B', 30.5, [48, [4, 128]], 40_960, apache),
  model('mistralai/Mistral-7B-Instruct-v0.3', 7.25, llama8b, 32_768, apache),
  model('mistralai/Mixtral-8x7B-Instruct-v0.1', 46.7, llama8b, 32_768, apache),
  model('mistralai/Mistral-Small-24B-Instruct-2501', 23.6, [40, [8, 128]], 32_768, apache),
  model('google/gemma-2-2b-it', 2.61, [26, [4, 256]], 8_192, gemma),
  model('google/gemma-2-9b-it', 9.24, [42, [8, 256]], 8_192, gemma),
  model('google/gemma-2-27b-it', 27.2, [46, [16, 128]], 8_192, gemma),
  model('microsoft/phi-4', 14.7, [40, [10, 128]], 16_384, 'MIT'),
  model('deepseek-ai/DeepSeek-R1-Distill-Llama-8B', 8.03, llama8b, 131_072, 'MIT'),
  model('deepseek-ai/DeepSeek-R1-Distill-Qwen-7B', 7.62, qwen7b, 131_072, 'MIT'),
  model('deepseek-ai/DeepSeek-R1-Distill-Qwen-32B', 32.8, qwen32b, 131_072, 'MIT'),
  {
    ...model('openai/gpt-oss-20b', 20.9, [24, [8, 64]], 131_072, apache),
    weightBytes: 12.8 * gib,
  },
  {
    ...model('openai/gpt-oss-120b', 116.8, [36, [8, 64]], 131_072, apache),
    weightBytes: 60.8 * gib,
  },
  model('TinyLlama/TinyLlama-1.1B-Chat-v1.0', 1.1, [22, [4, 64]], 2_048, apache),
];

/** Bits per parameter of quantised repositories, by the end of their name. Scales take more than the bits say. */
const quantised: readonly (readonly [ending: RegExp, bits: number])[] = [
  [/-(awq|gptq-int4|gptq|int4|bnb-4bit|4bit)$/i, 4.5],
  [/-(fp8|fp8-dynamic|int8|gptq-int8|8bit)$/i, 8.25],
];

/** The known model of a repository, or of a quantised copy that names it; with the bytes of its weights. */
export function findKnownModel(
  repository: string,
): (KnownModel & { readonly weightBytes: number }) | undefined {
  const [ending, bits] = quantised.find(([pattern]) => pattern.test(repository)) ?? [/$^/, 16];
  const name = toBaseName(repository.replace(ending, ''));
  const found = knownModels.find((one) => toBaseName(one.repository) === name);
  if (found === undefined) return undefined;
  const stated = bits === 16 ? found.weightBytes : undefined;
  return { ...found, weightBytes: stated ?? (found.billions * 1e9 * bits) / 8 };
}

/** Copies of a model are in other people's repositories, under the same name. */
const toBaseName = (repository: string) => repository.split('/').at(-1)?.toLowerCase();
