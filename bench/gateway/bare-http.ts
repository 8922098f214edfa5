// A yardstick: node:http and undici passing bytes on. It parses nothing.

import { createServer } from 'node:http';
import { Pool } from 'undici';

const [port, upstream] = process.argv.slice(2).map(Number) as [number, number];
const pool = new Pool(`http://127.0.0.1:${upstream}`, { connections: 2048 });

createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    pool
      .request({
        path: '/v1/chat/completions',
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: Buffer.concat(parts),
      })
      .then(({ statusCode, headers, body }) => {
        response.writeHead(statusCode, { 'content-type': String(headers['content-type']) });
        body.pipe(response);
      })
      .catch(() => response.writeHead(502).end());
  });
}).listen(port, '127.0.0.1');
