// Syntax highlighting, loaded when an answer has code. It runs in a worker.

/** A piece of highlighted code: text, or a span of pieces. */
export type CodeNode =
  | { readonly type: 'text'; readonly value: string }
  | {
      readonly type: 'element';
      readonly properties: { readonly className?: readonly string[] };
      readonly children: readonly CodeNode[];
    };

export interface HighlightJob {
  readonly id: number;
  readonly language: string;
  readonly code: string;
}

export interface HighlightResult {
  readonly id: number;
  readonly nodes: readonly CodeNode[];
}

export type Highlight = (code: string, language: string) => Promise<readonly CodeNode[]>;

export function createHighlight(): Highlight {
  const worker = new Worker(new URL('./highlight-worker.ts', import.meta.url), { type: 'module' });
  const waiting = new Map<number, (nodes: readonly CodeNode[]) => void>();
  let count = 0;
  worker.onmessage = ({ data: { id, nodes } }: MessageEvent<HighlightResult>) => {
    waiting.get(id)?.(nodes);
    waiting.delete(id);
  };
  return (code, language) => {
    const { promise, resolve } = Promise.withResolvers<readonly CodeNode[]>();
    const job: HighlightJob = { id: count++, language, code };
    waiting.set(job.id, resolve);
    worker.postMessage(job);
    return promise;
  };
}
