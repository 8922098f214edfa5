// The documentation is checked like code: links lead somewhere, tables have headers, and what pages list is complete.

import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, test } from 'node:test';
import { loadConfig } from '#config/load.ts';
import { overrides } from '#config/overrides.ts';
import { renderPages } from '../tools/docs.ts';

const root = join(import.meta.dirname, '..');
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file !== '' && existsSync(join(root, file)));
const pages = files.filter((file) => file.endsWith('.md') && !file.startsWith('.github/'));
const read = (file: string) => readFileSync(join(root, file), 'utf8');

describe('documentation', () => {
  test('every relative link leads to a file and a heading that exist', () => {
    const broken = pages.flatMap((page) =>
      [...withoutCode(read(page)).matchAll(/\]\((?!https?:)([^)\s]+)\)/g)]
        .map(([, link]) => link as string)
        .filter((link) => !leadsSomewhere(page, link))
        .map((link) => `${page}: ${link}`),
    );
    assert.deepEqual(broken, []);
  });

  test('every file of attacks is listed in their README', () => {
    const attacks = files.filter((file) => /^test\/attack\/.*\.ts$/.test(file));
    const readme = read('test/attack/README.md');
    assert.deepEqual(
      attacks.filter((file) => !readme.includes(`| \`${file.slice('test/attack/'.length)}\` |`)),
      [],
    );
  });

  test('every table has a header without empty cells', () => {
    const headless = pages.flatMap((page) =>
      read(page)
        .split('\n')
        .filter((line, index, lines) => isRule(lines[index + 1]) && /\|\s*\|/.test(line))
        .map((line) => `${page}: ${line}`),
    );
    assert.deepEqual(headless, []);
  });

  test('the configuration page lists every environment variable and flag', () => {
    const page = read('docs/configuration.md');
    const missing = overrides
      .flatMap(({ path, env, flag }) => [path, env, flag?.split(' ')[0] ?? path])
      .filter((name) => !page.includes(`\`${name}\``));
    assert.deepEqual(missing, []);
  });

  test('the pages that follow from the code are current: `npm run docs` writes them', async () => {
    for (const [file, text] of Object.entries(await renderPages())) {
      assert(read(file) === text, `${file} is out of date. Run \`npm run docs\`.`);
    }
  });

  test('every example configuration is valid', () => {
    const examples = files.filter((file) => /^examples\/config\/.*\.yaml$/.test(file));
    assert(examples.length > 0);
    for (const example of examples) {
      loadConfig({ config: join(root, example) }, { VLLM_KEY: 'key' });
    }
  });

  test('the page of examples lists every example', () => {
    const page = read('examples/README.md');
    const missing = files
      .filter((file) => file.startsWith('examples/') && !file.endsWith('README.md'))
      .filter((file) => !page.includes(`(${file.slice('examples/'.length)})`));
    assert.deepEqual(missing, []);
  });
});

const withoutCode = (text: string) => text.replace(/```[\s\S]*?```/g, '');

const isRule = (line: string | undefined) => /^\|(\s*:?-+:?\s*\|)+$/.test(line ?? '');

function leadsSomewhere(page: string, link: string): boolean {
  const [path = '', heading] = link.split('#');
  const target = path === '' ? page : normalize(join(dirname(page), path));
  if (!existsSync(join(root, target))) return false;
  return heading === undefined || headingsOf(target).includes(heading);
}

/** Headings as a page's readers address them. */
const headingsOf = (page: string) =>
  [...withoutCode(read(page)).matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
