// Connections take at most half of the files that the process may open.

import assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';

test('half of the files are left to the server itself', {
  skip: process.platform === 'linux' ? false : 'only Linux tells the limit',
}, () => {
  const module = join(import.meta.dirname, '../../src/http/connection-limit.ts');
  const program = `
    import { createServer } from 'node:http';
    import { limitConnections } from '${module}';
    const server = createServer();
    limitConnections(server);
    console.log(server.maxConnections);`;
  const command = 'ulimit -n 400 && exec "$0" --input-type=module -e "$1"';
  const shown = execFileSync('sh', ['-c', command, process.execPath, program], {
    encoding: 'utf8',
  });
  assert.equal(shown.trim(), '200');
});
