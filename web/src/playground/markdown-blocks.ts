// Cuts markdown into its top-level blocks, and long lists into several. While a long answer streams in, only its last
// block changes, so that only that one is parsed again. Also rewrites the ways in which models write maths into the one that the parser knows.

const fence = /^ {0,3}(`{3,}|~{3,})/;
/** Also one whose marker has just begun to arrive. */
const listItem = /^ {0,3}(([-*+]|\d{1,9}[.)])(\s|$)|\d{1,9}$)/;
const definition = /^ {0,3}\[(?!\^)[^\]\n]+\]:\s*\S.*$/gm;

/** Items after which a list is continued in another block: the parser's time grows with the block. */
const maxItems = 20;
const topItem = /^(?:([-*+])|(\d{1,9})([.)]))\s/;

/** Counts the items of a list, to tell where it can be continued by another list. */
class ItemCount {
  #marker = '';
  #start = 0;
  #items = 0;

  /** True if the line begins an item of the same list after which enough others have been counted. */
  isFull(line: string): boolean {
    const [, bullet, number, delimiter] = topItem.exec(line) ?? [];
    if (this.#items < maxItems || (bullet ?? delimiter) !== this.#marker) return false;
    // A list whose items are all numbered 1 would start again.
    return number === undefined || Number(number) === this.#start + this.#items;
  }

  add(line: string, isFirst: boolean): void {
    const [item, bullet, number, delimiter = ''] = topItem.exec(line) ?? [];
    if (isFirst)
      [this.#items, this.#start, this.#marker] = [0, Number(number), bullet ?? delimiter];
    if (item !== undefined) this.#items++;
  }
}

/** Joined with newlines, the blocks are the text. */
export function splitBlocks(text: string): string[] {
  const blocks: string[] = [];
  const items = new ItemCount();
  let block: string[] = [];
  let closing: string | null = null;
  let isList = false;
  for (const line of text.split('\n')) {
    const isFull = closing === null && isList && items.isFull(line);
    const isNew =
      closing === null &&
      block.at(-1) === '' &&
      line !== '' &&
      !/^\s/.test(line) &&
      !(isList && listItem.test(line));
    if (isNew || isFull) {
      blocks.push(block.join('\n'));
      block = [];
    }
    if (block.length === 0) isList = listItem.test(line);
    items.add(line, block.length === 0);
    block.push(line.trim() === '' && closing === null ? '' : line);
    closing = toClosing(closing, line);
  }
  return block.length === 0 ? blocks : [...blocks, block.join('\n')];
}

const maxRows = 20;
const delimiterRow = /^ {0,3}\|?(\s*:?-+:?\s*\|)+(\s*:?-+:?\s*)?$/;

/** A long table as several with the same head; null for any other block. */
export function splitTable(block: string): string[] | null {
  const [head = '', delimiter = '', ...rows] = block.trimEnd().split('\n');
  const isTable = delimiterRow.test(delimiter) && rows.every((row) => row.includes('|'));
  if (!isTable || rows.length <= maxRows) return null;
  const starts = Array.from({ length: Math.ceil(rows.length / maxRows) }, (_, at) => at * maxRows);
  return starts.map((at) => [head, delimiter, ...rows.slice(at, at + maxRows)].join('\n'));
}

/** What ends the code or display maths that the next line is in; null if it is in neither. */
function toClosing(closing: string | null, line: string): string | null {
  const trimmed = line.trim();
  if (closing !== null) {
    const isEnd = trimmed.startsWith(closing) && !/^[`~]+[^`~]/.test(trimmed);
    return isEnd ? null : closing;
  }
  const [, mark] = fence.exec(line) ?? [];
  if (mark !== undefined) return mark;
  if (trimmed === '$$') return '$$';
  return trimmed.startsWith('\\[') && !trimmed.includes('\\]') ? '\\]' : null;
}

const maxBlockLength = 100_000;
const maxDefinitionsLength = 10_000;
/** Marks of emphasis and links in one paragraph: the parser's time grows with their square. */
const maxMarks = 2_000;
/** Fifty quotes and lists in each other, which overflow the stack when there are a thousand. */
const deep = /^(?:[ \t]*(?:>|[-*+][ \t]|\d{1,9}[.)][ \t])){50}/;
/** A hundred columns: each row of a table gets as many cells as its head. */
const wide = /(?:\|[^|\n]*){100}/;
const bullet = /^ {0,3}[-*+]\s+\S/;
const strictFence = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;

/** True for a block that takes the parser seconds, or that it fails on. A model or another member may write one. */
export function isTooComplex(block: string): boolean {
  // Nothing inside HTML is a fence.
  const hasHtml = /^ {0,3}</m.test(block);
  let closing: string | null = null;
  let [marks, length] = [0, 0];
  for (const line of block.split('\n')) {
    if (closing !== null) {
      if (line.trim().startsWith(closing)) closing = null;
      continue;
    }
    if (!hasHtml) closing = strictFence.exec(line)?.[1] ?? null;
    if (line.trim() === '' || bullet.test(line)) marks = 0;
    marks += line.match(/[*_~[\]]/g)?.length ?? 0;
    length += line.length;
    if (marks > maxMarks || length > maxBlockLength || deep.test(line) || wide.test(line))
      return true;
  }
  return false;
}

/** The code of a block whose fence has not ended yet; null for any other block. It needs no parser, whose time would grow
 * with all of the code at each new token. */
export function findOpenCode(block: string): { language: string; code: string } | null {
  const [head, mark, info = ''] = /^(`{3,}(?=[^`\n]*\n)|~{3,})([^\n]*)\n/.exec(block) ?? [];
  if (head === undefined || mark === undefined) return null;
  const code = block.slice(head.length);
  const isClosed = new RegExp(`^ {0,3}${mark}[\`~]*[ \\t]*$`, 'm').test(code);
  return isClosed ? null : { language: /^[\w+#-]*/.exec(info.trim())?.[0] ?? '', code };
}

/** Link targets that a text defines, to be added to each of its blocks: one may use what another defines. */
export function findDefinitions(text: string): string {
  const found = (text.match(definition) ?? []).join('\n');
  return found.length > maxDefinitionsLength ? '' : found;
}

const code = /(`{3,}[\s\S]*?(?:`{3,}|$)|~{3,}[\s\S]*?(?:~{3,}|$)|`[^`\n]*`)/;

/** A mark of display maths. Dollars begin it only at the start of a line, after quotes and the mark of a list item. */
const mathsMark = /\\\\|\\[[\]]|(?<start>^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)\$\$|\$\$/gm;

/**
 * Where display maths begins that has not ended yet; null if there is none. Half a formula is an error, and would be
 * parsed again at each token.
 */
export function findOpenMaths(block: string): number | null {
  const masked = block
    .split(code)
    .map((part, index) => (index % 2 === 1 ? 'x'.repeat(part.length) : part))
    .join('');
  let [open, closing]: [number | null, string] = [null, ''];
  for (const { 0: found, index, groups } of masked.matchAll(mathsMark)) {
    const start = groups?.start;
    const mark = found.slice(start?.length);
    if (open !== null && mark === closing) open = null;
    else if (open === null && mark === '\\[') [open, closing] = [index, '\\]'];
    else if (open === null && start !== undefined) [open, closing] = [index + start.length, '$$'];
  }
  return open;
}

/**
 * `\[x\]`, `\(x\)` and `$x$` become `$$x$$`, outside of code. A single dollar counts only if no space is inside it and
 * no digit follows: otherwise it is money.
 */
export const normalizeMaths = (text: string): string =>
  /[$\\]/.test(text)
    ? text
        .split(code)
        .map((part, index) => (index % 2 === 1 ? part : toDoubleDollars(part)))
        .join('')
    : text;

const toDoubleDollars = (text: string) =>
  text
    .replaceAll(/\\\[([\s\S]{1,5000}?)\\\]/g, (_, maths: string) => `\n$$\n${maths.trim()}\n$$\n`)
    .replaceAll(/\\\(([^\n]{1,2000}?)\\\)/g, (_, maths: string) => `$$${maths.trim()}$$`)
    .replaceAll(
      /(?<![\\$])\$(?![\s$])((?:\\.|[^$\\\n])*?(?:\\.|[^$\\\s]))\$(?![\d$])/g,
      (_, maths: string) => `$$${maths}$$`,
    );

/** True if the text may have maths after `normalizeMaths`. */
export const hasMaths = (text: string) => text.includes('$$');
