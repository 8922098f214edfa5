// What answers for each model, how it does, and changing it.

import { useQuery } from '@tanstack/react-query';
import { get, type List } from '../api.ts';

export const servers = ['vllm', 'sglang', 'llama-server', 'ollama', 'openai'] as const;

export interface Backend {
  /** `<model>/<name>`. */
  id: string;
  model: string;
  name: string;
  kind: 'upstream' | 'weights' | 'stand-in';
  source: 'file' | 'live' | 'weights' | 'builtin';
  url: string | null;
  upstream_model: string | null;
  server: (typeof servers)[number] | null;
  weight: number;
  concurrency: number | null;
  draining: boolean;
  health: 'healthy' | 'ejected' | 'probation';
  reason: string | null;
  retry_at: string | null;
  checked_at: string | null;
  outstanding: number;
  /** Of the whole model. */
  queued: number;
  requests_per_second: number;
  first_token_ms: number | null;
  errors: number;
}

/** What a check of a backend that is not added yet found. */
export interface BackendCheck {
  ok: boolean;
  message: string;
  models: string[];
  latency_ms: number;
}

export const backendsKey = ['backends'];
const path = '/dashboard/api/backends';

/** Rates change all the time, so this list is read again while somebody looks. */
export function useBackends() {
  return useQuery({
    queryKey: backendsKey,
    queryFn: () => get<List<Backend>>(path),
    refetchInterval: 3000,
  });
}

export const toBackendPath = ({ model, name }: Pick<Backend, 'model' | 'name'>) =>
  `${path}/${encodeURIComponent(model)}/${encodeURIComponent(name)}`;
