// Commands that show something: as text, as JSON with --json, and again and again with --watch. On a terminal
// --watch redraws in place.

import { setTimeout as sleep } from 'node:timers/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { CliError, printJson, toPrintableLines } from './output.ts';

export interface View {
  /** What --json prints. */
  readonly data: unknown;
  readonly text: string;
  /** Lines for stderr, such as why something is unhealthy. They are read only if text is printed. */
  readonly notes?: () => readonly string[] | Promise<readonly string[]>;
  /** True if the command exits with 1 although it could show everything. */
  readonly failed?: boolean;
}

interface ViewOptions {
  readonly json?: true;
  readonly watch?: true;
  readonly interval: number;
}

/** Adds --json, --watch and --interval, and shows what `read` returns for the arguments and options of the command.
 * Null means that `read` has printed another format itself. */
export function addView<Args extends unknown[]>(
  command: Command,
  read: (...args: Args) => Promise<View | null>,
): Command {
  return command
    .option('--json', 'Print JSON; with --watch, one line each time')
    .option('--watch', 'Show it again and again, until Ctrl-C')
    .option('--interval <seconds>', 'Time between two readings of --watch', parseInterval, 2)
    .action(async (...args) => {
      const { json, watch, interval } = command.opts<ViewOptions>();
      const readOnce = () => read(...(args as unknown as Args));
      if (watch) return watchView(readOnce, interval * 1000, json === true);
      const view = await readOnce();
      if (view === null) return;
      if (json) printJson(view.data);
      else {
        console.log(toPrintableLines(view.text));
        for (const line of await readNotes(view)) console.error(line);
      }
      if (view.failed) throw new CliError('');
    });
}

const readNotes = async ({ notes }: View) =>
  (notes === undefined ? [] : await notes()).map(toPrintableLines);

/** An error at the first reading ends the command. A later one is shown, and read again: servers restart. */
async function watchView(
  readOnce: () => Promise<View | null>,
  intervalMs: number,
  json: boolean,
): Promise<void> {
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  const draw = process.stdout.isTTY && !json ? drawInPlace : print;
  let isFirst = true;
  while (!stop.signal.aborted) {
    try {
      const view = await readOnce();
      if (view !== null) draw(json ? JSON.stringify(view.data) : await toText(view));
    } catch (error) {
      if (isFirst || !(error instanceof CliError)) throw error;
      if (json) console.error(toPrintableLines(error.message));
      else draw(toPrintableLines(error.message));
    }
    isFirst = false;
    await sleep(intervalMs, undefined, { signal: stop.signal }).catch(() => {});
  }
  throw new CliError('', 130);
}

const toText = async (view: View) =>
  [toPrintableLines(view.text), ...(await readNotes(view)), ''].join('\n');

const print = (text: string) => void process.stdout.write(`${text}\n`);

const home = '\u001b[H';
const clearLine = '\u001b[K';
const clearBelow = '\u001b[J';

/** Overwrites the screen instead of clearing it first, which would flicker. Lines that do not fit are left out. */
function drawInPlace(text: string): void {
  const { rows = 24, columns = 80 } = process.stdout;
  const lines = text
    .trimEnd()
    .split('\n')
    .flatMap((line) => wrap(line, columns));
  const left = lines.length - (rows - 1);
  const shown = left <= 0 ? lines : [...lines.slice(0, rows - 2), `… ${left + 1} more lines`];
  process.stdout.write(
    `${home}${shown.map((line) => `${line}${clearLine}\n`).join('')}${clearBelow}`,
  );
}

const wrap = (line: string, columns: number) =>
  line.match(new RegExp(`.{1,${columns}}`, 'gu')) ?? [''];

function parseInterval(text: string): number {
  const seconds = Number(text);
  if (/^\d+(\.\d+)?$/.test(text) && seconds >= 1 && seconds <= 3600) return seconds;
  throw new InvalidArgumentError('Give seconds between 1 and 3600.');
}
