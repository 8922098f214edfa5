// Checks an upstream before it is added: whether it responds, and whether it has the model.

import { EngineError } from '#inference/engine.ts';
import type { BackendCheck } from './schema.ts';
import { type ProbeUpstream, toUpstreamOptions, type UpstreamSpec } from './spec.ts';

const timeoutMs = 10_000;
const maxModels = 200;

export async function checkUpstream(
  probe: ProbeUpstream,
  spec: UpstreamSpec,
): Promise<BackendCheck> {
  const began = performance.now();
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const { models, latencyMs } = await probe(toUpstreamOptions(spec), signal);
    const has = offers(models, spec.upstreamModel);
    return {
      ok: has,
      message: has
        ? `It answers, and has ${spec.upstreamModel}.`
        : `It answers, but has no model ${spec.upstreamModel}. ${toList(models)}`,
      models: models.slice(0, maxModels),
      latency_ms: Math.round(latencyMs),
    };
  } catch (error) {
    return {
      ok: false,
      message: signal.aborted ? `No answer in ${timeoutMs / 1000} seconds.` : toMessage(error),
      models: [],
      latency_ms: Math.round(performance.now() - began),
    };
  }
}

/** Ollama lists `llama3:latest` and takes `llama3`. */
const offers = (models: readonly string[], wanted: string) =>
  models.includes(wanted) || models.includes(`${wanted}:latest`);

function toList(models: readonly string[]): string {
  if (models.length === 0) return 'It lists none.';
  const shown = models.slice(0, 20).join(', ');
  return `It has: ${shown}${models.length > 20 ? ` and ${models.length - 20} more` : ''}.`;
}

/** Only an engine's own messages are shown: any other could quote the request and its key. */
function toMessage(error: unknown): string {
  if (!(error instanceof EngineError)) return 'The address cannot be asked.';
  if (error.failure !== 'rejected') return error.message;
  return `${error.message} Most addresses end in /v1; a service without a list can be added all the same.`;
}
