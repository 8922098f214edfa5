// The programs in the pages of docs/ and in examples/, extracted and run.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makeFolder } from './process.ts';

const root = join(import.meta.dirname, '../..');
const run = promisify(execFile);

export interface Block {
  /** The heading above it; that of the page before the first section. */
  section: string;
  language: string;
  code: string;
}

export function readBlocks(page: string): Block[] {
  const sections = readFileSync(join(root, 'docs', page), 'utf8')
    .split(/^##? /m)
    .slice(1);
  return sections.flatMap((text) =>
    [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = '']) => ({
      section: text.slice(0, text.indexOf('\n')),
      language,
      code,
    })),
  );
}

/** A program that is a file of the repository. */
export const readProgram = (path: string): Block => ({
  section: path,
  language: 'ts',
  code: readFileSync(join(root, path), 'utf8'),
});

/** A folder with the packages of test/clients/frameworks/package.json. */
export const frameworks = join(process.env.MILLRACE_TEST_FRAMEWORKS ?? '', 'node_modules');
export const needsFrameworks =
  process.env.MILLRACE_TEST_FRAMEWORKS === undefined &&
  'set MILLRACE_TEST_FRAMEWORKS to a folder with test/clients/frameworks/package.json installed';

interface Programs {
  python?: string | undefined;
  /** The folder of packages that a program in TypeScript may import. */
  packages?: string;
}

/** Returns what the program prints. */
export async function runBlock(
  { language, code }: Block,
  { url, key }: { url: string; key: string },
  { python = 'python3', packages = join(root, 'node_modules') }: Programs = {},
): Promise<string> {
  const folder = makeFolder();
  symlinkSync(packages, join(folder, 'node_modules'));
  const file = join(folder, `program.${language === 'ts' ? 'mts' : language}`);
  writeFileSync(file, code);
  const programs: Record<string, string> = { sh: 'bash', ts: process.execPath, python };
  const env = { ...process.env, MILLRACE_URL: url, MILLRACE_API_KEY: key };
  const { stdout } = await run(programs[language] ?? assert.fail(language), [file], { env });
  return stdout;
}
