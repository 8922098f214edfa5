// Node's HTTP server and client. `import … from 'node:http'` would read every export of that module, one of which loads
// undici: 15 MB of memory and 70 ms of each start.

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export const { createServer, request } = process.getBuiltinModule('node:http');

/** A connection of the server. `_httpMessage` is Node's name for the response being sent. */
export type HttpSocket = Socket & { _httpMessage?: ServerResponse | null };
