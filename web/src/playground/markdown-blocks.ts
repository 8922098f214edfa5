// Cuts markdown into its top-level blocks. While a long answer streams in, only its last block changes, so that only
// that one is parsed again. Also rewrites the ways in which models write maths into the one that the parser knows.

const fence = /^ {0,3}(`{3,}|~{3,})/;
/** Also one whose marker has just begun to arrive. */
const listItem = /^ {0,3}(([-*+]|\d{1,9}[.)])(\s|$)|\d{1,9}$)/;
const definition = /^ {0,3}\[(?!\^)[^\]\n]+\]:\s*\S.*$/gm;

/** Joined with newlines, the blocks are the text. */
export function splitBlocks(text: string): string[] {
  const blocks: string[] = [];
  let block: string[] = [];
  let closing: string | null = null;
  let isList = false;
  for (const line of text.split('\n')) {
    const isNew =
      closing === null &&
      block.at(-1) === '' &&
      line !== '' &&
      !/^\s/.test(line) &&
      !(isList && listItem.test(line));
    if (isNew) {
      blocks.push(block.join('\n'));
      block = [];
    }
    if (block.length === 0) isList = listItem.test(line);
    block.push(line.trim() === '' && closing === null ? '' : line);
    closing = toClosing(closing, line);
  }
  return block.length === 0 ? blocks : [...blocks, block.join('\n')];
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

/** Link targets that a text defines, to be added to each of its blocks: one may use what another defines. */
export const findDefinitions = (text: string): string => (text.match(definition) ?? []).join('\n');

const code = /(`{3,}[\s\S]*?(?:`{3,}|$)|~{3,}[\s\S]*?(?:~{3,}|$)|`[^`\n]*`)/;

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
    .replaceAll(/\\\[([\s\S]+?)\\\]/g, (_, maths: string) => `\n$$\n${maths.trim()}\n$$\n`)
    .replaceAll(/\\\(([^\n]+?)\\\)/g, (_, maths: string) => `$$${maths.trim()}$$`)
    .replaceAll(
      /(?<![\\$])\$(?![\s$])((?:\\.|[^$\\\n])*?(?:\\.|[^$\\\s]))\$(?![\d$])/g,
      (_, maths: string) => `$$${maths}$$`,
    );

/** True if the text may have maths after `normalizeMaths`. */
export const hasMaths = (text: string) => text.includes('$$');
