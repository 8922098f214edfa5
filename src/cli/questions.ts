// Questions that a command asks at the terminal, or whose answers a pipe holds line by line. One reader
// for all of them: a second one would miss the lines that the first has read ahead.

import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { CliError } from './output.ts';

export interface Questions {
  ask(question: string): Promise<string>;
  /** Doesn't show what is typed. */
  askSecret(question: string): Promise<string>;
}

/** Throws a CliError when the input ends before the answer. */
export async function withQuestions<Value>(
  use: (questions: Questions) => Promise<Value>,
): Promise<Value> {
  const isTerminal = process.stdin.isTTY === true;
  let hidden = false;
  const screen = new Writable({
    write(chunk, _encoding, done) {
      if (!hidden) process.stderr.write(chunk);
      done();
    },
  });
  const reader = createInterface({
    input: process.stdin,
    // The width tells the reader where a long line wraps.
    output: Object.assign(screen, { columns: process.stderr.columns }),
    terminal: isTerminal,
  });
  const lines = reader[Symbol.asyncIterator]();

  async function readAnswer(question: string): Promise<string> {
    const { value, done } = await lines.next();
    if (done === true) throw new CliError(`The input ended before an answer to "${question}".`);
    return value;
  }

  function show(question: string): void {
    if (!isTerminal) return;
    reader.setPrompt(question);
    reader.prompt();
  }

  try {
    return await use({
      async ask(question) {
        show(question);
        return (await readAnswer(question.trim())).trim();
      },
      async askSecret(question) {
        show(question);
        hidden = true;
        try {
          return await readAnswer(question.trim());
        } finally {
          hidden = false;
          if (isTerminal) process.stderr.write('\n');
        }
      },
    });
  } finally {
    reader.close();
  }
}
