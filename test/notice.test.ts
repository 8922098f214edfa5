// NOTICE has the licences of the dependencies that are locked now.

import assert from 'node:assert';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { renderNotice } from '../tools/notice.ts';

const root = join(import.meta.dirname, '..');

test('NOTICE is current: `npm run notice` writes it', () => {
  const committed = readFileSync(join(root, 'NOTICE'), 'utf8');
  assert(committed === renderNotice(), 'NOTICE is not current. Run `npm run notice`.');
});

test('NOTICE names every production dependency and those of the dashboard', () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const committed = readFileSync(join(root, 'NOTICE'), 'utf8');
  for (const [name, version] of [...Object.entries(dependencies), ['react', '']]) {
    assert(committed.includes(`\n  ${name} ${version}`), String(name));
  }
});
