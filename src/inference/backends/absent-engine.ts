// The engine of a deployment without a replica that takes requests. No request reaches it, because its backend is always
// busy.

import { type Engine, EngineError } from '#inference/engine.ts';

export function createAbsentEngine(name: string): Engine {
  const refuse = async () => {
    throw new EngineError('unavailable', 'No replica is ready.', { code: 'model_unavailable' });
  };
  return {
    name,
    stream: refuse,
    respond: refuse,
    countPromptTokens: async () => null,
    close: async () => {},
  };
}
