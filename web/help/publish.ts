// Writes the guide into a folder, for a web server of your own: `npm run build:guide -- site`.

import { existsSync, readdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { buildGuide } from './guide.ts';

const [folder] = process.argv.slice(2);
if (folder === undefined) fail('Name a folder: npm run build:guide -- site');
if (existsSync(folder) && readdirSync(folder).length > 0) {
  fail(`${folder} is not empty. Name a new folder, or empty it.`);
}
await buildGuide(resolve(folder), false);
console.log(`The guide is in ${folder}. Its first page is index.html.`);

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}
