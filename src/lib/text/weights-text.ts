// Which weights the engine of a deployment loads, in words.

interface Engine {
  readonly engine: string;
  readonly source: string | null;
  readonly model: string;
}

/** Null for a program of `command` without a source, which finds its weights by itself. */
export function toWeightsText({ engine, source, model }: Engine): string | null {
  if (source !== null) return source;
  if (engine === 'command') return null;
  return engine === 'builtin' ? 'the built-in model' : model;
}
