// Markdown on a terminal as it streams: headings, lists, quotes, code, bold and italic. Text is held back only while
// it may still become one of them, and every character that is not a marker is printed.

import { styleText } from 'node:util';

type Style = 'bold' | 'italic' | 'underline' | 'dim' | 'cyan';

export interface MarkdownStream {
  /** Returns what can be printed now. */
  write(text: string): string;
  /** Returns what was held back. */
  end(): string;
}

interface State {
  /** What is not printed yet. */
  rest: string;
  isLineStart: boolean;
  /** The marker that ends the block of code; null outside of one. */
  fence: string | null;
  /** Styles of the whole line, such as those of a heading. */
  line: readonly Style[];
}

/** A marker whose end is farther away is printed as it is, so that an answer does not seem to stop. */
const maxHeld = 500;
const ruleWidth = 40;

export function createMarkdown(): MarkdownStream {
  const state: State = { rest: '', isLineStart: true, fence: null, line: [] };
  const advance = (isOver: boolean) => {
    let printed = '';
    for (let part = step(state, isOver); part !== null; part = step(state, isOver)) printed += part;
    return printed;
  };
  return {
    write(text) {
      state.rest += text;
      return advance(false);
    },
    end: () => advance(true),
  };
}

/** Takes something from the rest and returns what to print for it; null if more text must arrive first. */
function step(state: State, isOver: boolean): string | null {
  if (state.rest === '') return null;
  if (state.fence !== null) return takeCodeLine(state, isOver);
  return state.isLineStart ? takeLineStart(state, isOver) : takeInline(state, isOver);
}

/** Undefined if the line is not complete. */
function takeLine(state: State, isOver: boolean): string | undefined {
  const end = state.rest.indexOf('\n');
  if (end === -1 && !isOver) return undefined;
  const line = end === -1 ? state.rest : state.rest.slice(0, end + 1);
  state.rest = state.rest.slice(line.length);
  return line;
}

/** Styles end before the line does: some terminals colour the rest of the line otherwise. */
function paint(text: string, styles: readonly Style[]): string {
  const [, body = '', end = ''] = /^(.*?)(\n?)$/s.exec(text) ?? [];
  return body === '' ? end : styleText([...styles], body, { validateStream: false }) + end;
}

function takeCodeLine(state: State, isOver: boolean): string | null {
  const line = takeLine(state, isOver);
  if (line === undefined) return null;
  const isEnd = line.trim().startsWith(state.fence ?? '') && /^[`~]+$/.test(line.trim());
  if (isEnd) state.fence = null;
  return paint(line, isEnd ? ['dim'] : ['cyan']);
}

/** A line that has only these may still begin a block. */
const undecided = /^ *(#{1,6}|[-*+]|>|`{1,}.*|~{1,}.*|[-*_][-*_ ]*)?$/;

function takeLineStart(state: State, isOver: boolean): string | null {
  const { rest } = state;
  const isWhole = isOver || rest.includes('\n');
  if (!isWhole && undecided.test(rest) && rest.length < maxHeld) return null;
  const fence = /^ *(`{3,}|~{3,})[^`\n]*(\n|$)/.exec(rest)?.[1];
  if (fence !== undefined) {
    state.fence = fence;
    return paint(takeLine(state, true) ?? '', ['dim']);
  }
  if (/^ {0,3}([-*_])( *\1){2,} *(\n|$)/.test(rest)) {
    const line = takeLine(state, true) ?? '';
    return paint('─'.repeat(ruleWidth) + (line.endsWith('\n') ? '\n' : ''), ['dim']);
  }
  state.isLineStart = false;
  const [marker = '', hashes] = /^(#{1,6}) +|^ *[-*+] +|^> ?/.exec(rest) ?? [];
  state.rest = rest.slice(marker.length);
  if (hashes !== undefined) {
    state.line = hashes.length <= 2 ? ['bold', 'underline'] : ['bold'];
    return '';
  }
  return marker.startsWith('>') ? paint('│ ', ['dim']) : marker.replace(/[-*+]/, '•');
}

function takeInline(state: State, isOver: boolean): string | null {
  const { rest, line } = state;
  const at = rest.search(/[*`\n]/);
  if (at !== 0) {
    const text = at === -1 ? rest : rest.slice(0, at);
    state.rest = rest.slice(text.length);
    return paint(text, line);
  }
  if (rest.startsWith('\n')) {
    Object.assign(state, { rest: rest.slice(1), isLineStart: true, line: [] });
    return '\n';
  }
  const isDecided = isOver || rest.includes('\n') || rest.length > maxHeld;
  const span = /^(`+)(?!`)([^\n]*?[^`\n])\1(?!`)|^(\*{1,2})(?![\s*])([^\n]*?[^\s*])\3(?!\*)/.exec(
    rest,
  );
  // The next character may belong to the marker.
  const isComplete = span !== null && (isDecided || span[0].length < rest.length);
  if (!isDecided && !isComplete && !/^\*{1,2}\s/.test(rest)) return null;
  if (span === null) {
    const [marker = ''] = /^(\*+|`+)/.exec(rest) ?? [];
    state.rest = rest.slice(marker.length);
    return paint(marker, line);
  }
  state.rest = rest.slice(span[0].length);
  const [, , code, stars, text = ''] = span;
  if (code !== undefined) return paint(code, [...line, 'cyan']);
  return renderInline(text, [...line, stars === '*' ? 'italic' : 'bold']);
}

/** Text within markers is complete, and may have markers itself. */
function renderInline(text: string, line: readonly Style[]): string {
  const state: State = { rest: text, isLineStart: false, fence: null, line };
  let printed = '';
  for (let part = step(state, true); part !== null; part = step(state, true)) printed += part;
  return printed;
}
