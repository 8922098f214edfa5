// Compiles grammars in a thread of its own, so that a request with many tools delays no other request, and
// caches them. Small schemas go there too: one with three members takes 0.8 ms of the loop if compiled inline and
// 1.3 ms in all through the thread, and a short one with a pattern can cost as much as a hundred tools.

import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { toEngineError } from '#inference/engine.ts';
import { type JobLimits, JobThread, JobTooLarge } from '#lib/async/job-thread.ts';
import type { Clock } from '#lib/clock.ts';
import type {
  CompiledGrammar,
  GrammarCaller,
  GrammarCompiler,
  GrammarRequest,
} from './grammar-compiler.ts';

export interface GrammarThread extends GrammarCompiler {
  /** Fails the compiles that wait or run, and every later one. */
  close(): Promise<void>;
}

/** The compiler's own work limit ends a compile in two or three seconds on an idle core. */
const defaultLimits: JobLimits = { maxLength: 64, maxWaitMs: 30_000, maxRunMs: 15_000 };

/** Bounds the memory of the queue. The largest grammar has as many characters. */
const maxRequestLength = 2_000_000;

const maxCachedGrammars = 1000;
const maxCachedLength = 16 * 1024 * 1024;

export interface GrammarJob {
  /** The hash of the request, under which its grammar is cached. */
  readonly key: string;
  /** A GrammarRequest as JSON. */
  readonly request: string;
}

export function createGrammarThread(clock: Clock, limits: Partial<JobLimits> = {}): GrammarThread {
  const cache = new LRUCache<string, CompiledGrammar>({
    max: maxCachedGrammars,
    maxSize: maxCachedLength,
    sizeCalculation: (compiled) => 100 + toText(compiled).length,
  });
  const jobs = new JobThread<GrammarJob, CompiledGrammar>(
    clock,
    {
      name: 'grammars',
      file: new URL('./grammar-worker.ts', import.meta.url),
      resourceLimits: { maxOldGenerationSizeMb: 512, stackSizeMb: 4 },
    },
    { ...defaultLimits, ...limits },
    {
      cache: {
        get: ({ key }) => cache.get(key),
        set: ({ key }, compiled) => void cache.set(key, compiled),
      },
    },
  );

  async function compile(request: GrammarRequest, caller: GrammarCaller): Promise<CompiledGrammar> {
    const text = toRequestText(request);
    if (text === null) return { refusal: 'the schema is too large for a grammar' };
    return jobs.run({ key: hash('sha256', text), request: text }, caller).catch(toRefusal);
  }

  return { compile, close: () => jobs.close() };
}

const toText = (compiled: CompiledGrammar) =>
  'grammar' in compiled ? compiled.grammar : compiled.refusal;

/** Null when it is too large, or nested too deep to be written. */
function toRequestText(request: GrammarRequest): string | null {
  try {
    const text = JSON.stringify(request);
    return text.length > maxRequestLength ? null : text;
  } catch {
    return null;
  }
}

function toRefusal(error: unknown): CompiledGrammar {
  if (!(error instanceof JobTooLarge)) throw toEngineError(error);
  return { refusal: `the schema takes too much ${error.limit}` };
}
