// A yardstick: Fastify and undici passing a request on and its answer back, and nothing else.

import Fastify from 'fastify';
import { Pool } from 'undici';

const [port, upstream] = process.argv.slice(2).map(Number) as [number, number];
const pool = new Pool(`http://127.0.0.1:${upstream}`, { connections: 128 });
const app = Fastify();
app.post('/v1/chat/completions', async (request, reply) => {
  const answer = await pool.request({
    path: '/v1/chat/completions',
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(request.body),
  });
  reply.code(answer.statusCode).type(String(answer.headers['content-type']));
  return reply.send(answer.body);
});
await app.listen({ host: '127.0.0.1', port });
