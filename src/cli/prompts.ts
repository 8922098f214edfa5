// Questions and confirmations. On a terminal `@clack/prompts` asks them on stderr; without one, answers are
// read from standard input line by line, and destructive commands refuse to run unless --yes is given.

import { createInterface } from 'node:readline';
import { toPrintable } from '#lib/text/printable.ts';
import { CliError } from './output.ts';

export interface Question {
  readonly message: string;
  /** Masks what is typed. */
  readonly secret?: boolean;
}

/** Asks the questions in order. Throws a CliError if input ends early, or with exit code 130 on Ctrl-C. */
export function ask(questions: readonly Question[]): Promise<string[]> {
  return process.stdin.isTTY ? askOnTerminal(questions) : readLines(questions);
}

/** Asks before a destructive step. Returns only if the answer is yes, or if --yes was given. */
export async function confirm(question: string, yes: true | undefined): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY) {
    throw new CliError(
      `${question} Standard input is not a terminal, so this needs --yes. Nothing was changed.`,
    );
  }
  const clack = await loadClack();
  const answer = await clack.confirm({
    // It contains names that other people chose.
    message: toPrintable(question),
    initialValue: false,
    ...onStderr,
  });
  if (clack.isCancel(answer)) throw cancelled();
  if (!answer) throw new CliError('Nothing was changed.');
}

// Standard output is for results that scripts read.
const onStderr = { output: process.stderr, withGuide: false };

const cancelled = () => new CliError('Cancelled. Nothing was changed.', 130);

/** Loaded only when there is something to ask: `serve` must not pay for it. */
async function loadClack() {
  const clack = await import('@clack/prompts');
  // Ctrl-D closes the reader without an answer, and the process would end in the middle of the question.
  clack.updateSettings({ aliases: { '\u0004': 'cancel' } });
  return clack;
}

async function askOnTerminal(questions: readonly Question[]): Promise<string[]> {
  const clack = await loadClack();
  const answers: string[] = [];
  for (const { message, secret } of questions) {
    const prompt = secret ? clack.password : clack.text;
    const answer = await prompt({ message, validate: requireAnswer, ...onStderr });
    if (clack.isCancel(answer)) throw cancelled();
    answers.push(secret ? answer : answer.trim());
  }
  return answers;
}

const requireAnswer = (value: string | undefined) =>
  value === undefined || value.trim() === ''
    ? 'Enter a value, or press Ctrl-C to cancel.'
    : undefined;

/** One reader for all questions: a second one would miss the lines that the first has buffered. */
async function readLines(questions: readonly Question[]): Promise<string[]> {
  const answers: string[] = [];
  for await (const line of createInterface({ input: process.stdin })) {
    answers.push(questions[answers.length]?.secret ? line : line.trim());
    if (answers.length === questions.length) return answers;
  }
  const missing = questions[answers.length] as Question;
  throw new CliError(`Standard input ended before the answer to "${missing.message}".`);
}
