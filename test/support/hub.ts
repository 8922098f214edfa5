// A model hub on loopback that behaves like the real one: a listing with checksums, files that redirect to another
// host, ranges and gated repositories. It can be told to misbehave.

import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after } from 'node:test';

export interface SeenRequest {
  host: 'hub' | 'cdn';
  path: string;
  range: string | undefined;
  authorization: string | undefined;
}

export interface TestHub {
  readonly url: string;
  /** Every request, in order. */
  readonly seen: SeenRequest[];
  /** Bytes of file contents sent, over all requests. */
  bytesSent(): number;
  /** Number of file contents being sent now. */
  sending(): number;
  /** `repo` may end in `@revision`. Default: `main`. */
  add(repo: string, files: Record<string, Buffer>, options?: { token?: string }): void;
  /** Sends `bytes` bytes of each response, then waits for `release`. */
  pauseAfter(bytes: number): void;
  release(): void;
  /** Cuts off the next `times` responses after `bytes` bytes. */
  cutAfter(bytes: number, times: number): void;
  /** Responds to the next `times` requests for contents with `status`. */
  fail(status: number, times: number): void;
  /** Sends bytes that don't match the listed checksum, in the next `times` responses. */
  corrupt(times: number): void;
  ignoreRanges(): void;
  close(): Promise<void>;
}

interface Repo {
  files: Record<string, Buffer>;
  token: string | undefined;
}

const open: (() => Promise<void>)[] = [];

after(async () => {
  for (const close of open) await close();
});

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const gitId = (bytes: Buffer) =>
  createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
/** The commit of a revision. */
const toCommit = (revision: string) => createHash('sha1').update(revision).digest('hex');
const toKey = (repo: string, revision: string) =>
  revision === 'main' ? repo : `${repo}@${revision}`;

export async function startHub(): Promise<TestHub> {
  const repos = new Map<string, Repo>();
  const seen: SeenRequest[] = [];
  const faults = { cut: 0, cuts: 0, status: 0, fails: 0, corrupts: 0, ranges: true };
  let pause = Number.POSITIVE_INFINITY;
  let released = Promise.withResolvers<void>();
  let bytesSent = 0;
  let sending = 0;

  const note = (host: SeenRequest['host'], { url = '', headers }: IncomingMessage) => {
    const { range, authorization } = headers;
    seen.push({ host, path: url, range, authorization });
  };

  function respondAsHub(request: IncomingMessage, response: ServerResponse): ServerResponse {
    note('hub', request);
    const path = decodeURIComponent(new URL(request.url ?? '', 'http://hub').pathname);
    const [, listed, named = ''] =
      /^\/api\/models\/([^/]+\/[^/]+)\/revision\/([^/]+)$/.exec(path) ?? [];
    const [, held, commit, file] = /^\/([^/]+\/[^/]+)\/resolve\/([^/]+)\/(.+)$/.exec(path) ?? [];
    const key =
      listed === undefined
        ? [...repos.keys()].find(
            (one) => toCommit(one.split('@')[1] ?? 'main') === commit && one.split('@')[0] === held,
          )
        : toKey(listed, named);
    const repo = repos.get(key ?? '');
    if (repo === undefined && repos.has(listed ?? held ?? ''))
      return refuse(response, 404, 'RevisionNotFound');
    // Like the real hub, respond with 401 to callers without access, also for repositories that don't exist.
    if (repo === undefined) return refuse(response, 401, 'RepoNotFound');
    if (repo.token !== undefined && request.headers.authorization !== `Bearer ${repo.token}`) {
      return refuse(response, 401, 'GatedRepo');
    }
    if (listed !== undefined) return sendJson(response, toListing(listed, named, repo));
    const bytes = repo.files[file ?? ''];
    if (bytes === undefined) return refuse(response, 404, 'EntryNotFound');
    const headers = {
      location: `${cdnUrl}/${key}/${encodeURIComponent(file ?? '')}?signature=secret`,
      'x-linked-etag': `"${sha256(bytes)}"`,
      'x-linked-size': bytes.length,
      'x-repo-commit': commit,
    };
    return response.writeHead(302, headers).end();
  }

  async function respondAsCdn(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<unknown> {
    note('cdn', request);
    if (faults.fails > 0) {
      faults.fails -= 1;
      return refuse(response, faults.status, 'Failing');
    }
    const [, owner, name, file = ''] = new URL(request.url ?? '', 'http://cdn').pathname.split('/');
    const whole = repos.get(`${owner}/${name}`)?.files[decodeURIComponent(file)];
    if (whole === undefined) return refuse(response, 403, 'SignatureMismatch');
    const start = faults.ranges
      ? Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
      : 0;
    if (start >= whole.length) return refuse(response, 416, 'InvalidRange');
    const body = Buffer.from(whole.subarray(start));
    if (faults.corrupts > 0) {
      faults.corrupts -= 1;
      body.writeUInt8(body.readUInt8(0) ^ 0xff, 0);
    }
    response.writeHead(start === 0 ? 200 : 206, {
      'content-length': body.length,
      'accept-ranges': 'bytes',
      ...(start === 0
        ? {}
        : { 'content-range': `bytes ${start}-${whole.length - 1}/${whole.length}` }),
    });
    sending += 1;
    try {
      return await sendBody(response, body);
    } finally {
      sending -= 1;
    }
  }

  async function sendBody(response: ServerResponse, body: Buffer): Promise<void> {
    const cut = faults.cuts > 0 ? faults.cut : Number.POSITIVE_INFINITY;
    if (faults.cuts > 0) faults.cuts -= 1;
    const first = body.subarray(0, Math.min(pause, cut));
    const gone = once(response, 'close');
    await write(response, first);
    if (first.length < body.length && cut === first.length) {
      response.destroy();
      return;
    }
    if (first.length < body.length) await Promise.race([released.promise, gone]);
    if (response.destroyed) return;
    await write(response, body.subarray(first.length));
    response.end();
  }

  function write(response: ServerResponse, bytes: Buffer): Promise<void> {
    bytesSent += bytes.length;
    return new Promise((done) => {
      if (bytes.length === 0) return done();
      response.write(bytes, () => done());
    });
  }

  const hub = createServer(respondAsHub);
  const cdn = createServer((request, response) => void respondAsCdn(request, response));
  const cdnUrl = await listen(cdn);
  const url = await listen(hub);
  const close = async () => {
    for (const server of [hub, cdn]) {
      server.closeAllConnections();
      server.close();
    }
  };
  open.push(close);

  return {
    url,
    seen,
    bytesSent: () => bytesSent,
    sending: () => sending,
    add: (repo, files, options) => void repos.set(repo, { files, token: options?.token }),
    pauseAfter(bytes) {
      pause = bytes;
      released = Promise.withResolvers<void>();
    },
    release() {
      pause = Number.POSITIVE_INFINITY;
      released.resolve();
    },
    cutAfter: (bytes, times) => void Object.assign(faults, { cut: bytes, cuts: times }),
    fail: (status, times) => void Object.assign(faults, { status, fails: times }),
    corrupt: (times) => void Object.assign(faults, { corrupts: times }),
    ignoreRanges: () => void Object.assign(faults, { ranges: false }),
    close,
  };
}

function toListing(id: string, revision: string, { files, token }: Repo) {
  return {
    id,
    sha: toCommit(revision),
    gated: token === undefined ? false : 'auto',
    siblings: Object.entries(files).map(([rfilename, bytes]) => ({
      rfilename,
      size: bytes.length,
      blobId: gitId(bytes),
      ...(/\.(gguf|safetensors)$/.test(rfilename)
        ? { lfs: { sha256: sha256(bytes), size: bytes.length, pointerSize: 134 } }
        : {}),
    })),
  };
}

const refuse = (response: ServerResponse, status: number, code: string) =>
  response.writeHead(status, { 'x-error-code': code }).end(code);

const sendJson = (response: ServerResponse, value: unknown) =>
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
