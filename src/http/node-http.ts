// Node's HTTP server and client. `import … from 'node:http'` would read every export of that module, one of which loads
// undici: 15 MB of memory and 70 ms of each start.

export const { createServer, request } = process.getBuiltinModule('node:http');
