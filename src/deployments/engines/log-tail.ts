// The last lines of a program's output, within a bound whatever it prints.

export interface LogTail {
  write(chunk: Buffer): void;
  /** The newest last. */
  lines(): readonly string[];
}

const maxLines = 200;
const maxLineLength = 2_000;

export function createLogTail(): LogTail {
  const lines: string[] = [];
  /** The beginning of a line that has not ended yet. */
  let open = '';
  return {
    write(chunk) {
      const [first = '', ...others] = chunk.toString().split('\n');
      open = cut(open + first);
      for (const next of others) {
        lines.push(withoutReturn(open));
        open = cut(next);
      }
      if (lines.length > maxLines) lines.splice(0, lines.length - maxLines);
    },
    lines: () => (open === '' ? lines : [...lines, withoutReturn(open)]),
  };
}

/** Keeps only the last state of a progress bar. Copied, because a slice keeps the whole text alive. */
function cut(text: string): string {
  const line = text.slice(text.lastIndexOf('\r', text.length - 2) + 1);
  return line.length > maxLineLength ? Buffer.from(line.slice(0, maxLineLength)).toString() : line;
}

/** What comes next may overwrite the line. */
const withoutReturn = (line: string) => (line.endsWith('\r') ? line.slice(0, -1) : line);
