// A client for a Hugging Face-compatible hub: lists the files of a repository, and reads one file
// from any offset. The token is sent only to the hub itself, never to a host that the hub redirects
// to, which must be on the internet unless the hub is not.

import { lookup } from 'node:dns/promises';
import type { Agent, Dispatcher } from 'undici';
import { readBounded } from '#lib/async/read-bounded.ts';
import {
  createPublicLookup,
  type IsPublic,
  isPrivateLiteral,
  isPublicAddress,
  privateCode,
  toHost,
} from '#lib/network/public-address.ts';
import { hubDenied, hubMissing, hubUnavailable, PullError } from './errors.ts';

export interface HubFile {
  /** Path inside the repository. */
  readonly path: string;
  /** Null for files outside large file storage; weights are always in it. */
  readonly sha256: string | null;
  /** Id of the file as a git object; null if the hub does not state it. */
  readonly gitId: string | null;
  readonly size: number | null;
}

export interface HubRepo {
  /** Current commit of the revision. Later requests name it, so that a pull never mixes two versions. */
  readonly commit: string;
  readonly files: readonly HubFile[];
}

export interface HubOptions {
  readonly url: string;
  readonly token: string | null;
}

/** How a request is made. */
export interface HubCall {
  readonly signal: AbortSignal;
  /** For this request, if the hub has no token of its own. */
  readonly token?: string | null | undefined;
}

export interface OpenFile {
  /** Offset of the first byte: the requested one, or 0 from a server that does not support ranges. */
  readonly from: number;
  readonly body: AsyncIterable<Buffer>;
}

type HubResponse = Dispatcher.ResponseData & {
  /** False if the response is from a host that the hub redirected to. */
  isHubs: boolean;
};

const maxRedirects = 5;
const privateReason = 'it redirects into a private network, but is not in one itself';
const reasons: Record<string, string> = {
  [privateCode]: privateReason,
  ECONNREFUSED: 'it refused the connection',
  ENOTFOUND: 'its host name was not found',
  EAI_AGAIN: 'its host name could not be looked up',
  ECONNRESET: 'the connection broke',
  UND_ERR_SOCKET: 'the connection broke',
  UND_ERR_CONNECT_TIMEOUT: 'it did not respond in time',
  UND_ERR_HEADERS_TIMEOUT: 'it did not respond in time',
  UND_ERR_BODY_TIMEOUT: 'it did not respond in time',
  TimeoutError: 'it did not respond in time',
};
const maxListingBytes = 32 * 1024 * 1024;

/** Methods throw a PullError: `unavailable` if a retry may help, `denied` or `missing` if not. */
export class Hub {
  readonly #url: string;
  readonly #start: URL;
  readonly #token: string | null;
  readonly #stallMs: number;
  readonly #isPublic: IsPublic | undefined;
  /** One for the hub, and one for the hosts that it redirects to. */
  readonly #agents = new Map<'hub' | 'others', Agent>();
  #isPrivate: Promise<boolean> | undefined;

  constructor(
    options: HubOptions,
    { stallMs = 30_000, isPublic }: { stallMs?: number; isPublic?: IsPublic } = {},
  ) {
    this.#url = options.url.replace(/\/+$/, '');
    this.#start = new URL(this.#url);
    this.#token = options.token;
    this.#stallMs = stallMs;
    this.#isPublic = isPublic;
  }

  async look(
    { repo, revision }: { repo: string; revision: string },
    call: HubCall,
  ): Promise<HubRepo> {
    const { signal } = call;
    const url = new URL(`${this.#url}/api/models/${repo}/revision/${revision}?blobs=true`);
    const ask = () => this.#get(url, { accept: 'application/json' }, call);
    // Retried once immediately: a kept-alive connection may have been closed since the last request.
    const response = await ask().catch((error) => {
      signal.throwIfAborted();
      return error instanceof PullError ? ask() : Promise.reject(error);
    });
    const what = revision === 'main' ? repo : `${repo}@${revision}`;
    if (response.statusCode !== 200) throw await this.#refusal(response, { repo, what }, call);
    try {
      return toRepo(JSON.parse(await this.#readText(response)));
    } catch (error) {
      if (error instanceof SyntaxError || error instanceof TypeError) {
        throw hubUnavailable(this.#url, 'its answer is not that of a model hub');
      }
      throw this.#unavailable(error, signal);
    }
  }

  async open(
    { repo, commit, path }: { repo: string; commit: string; path: string },
    offset: number,
    call: HubCall,
  ): Promise<OpenFile> {
    const { signal } = call;
    const encoded = path.split('/').map(encodeURIComponent).join('/');
    const url = new URL(`${this.#url}/${repo}/resolve/${commit}/${encoded}`);
    const response = await this.#get(url, offset === 0 ? {} : { range: `bytes=${offset}-` }, call);
    const { statusCode, headers } = response;
    if (statusCode === 200) return { from: 0, body: this.#bytesOf(response, signal) };
    const what = `${repo}/${path}`;
    if (statusCode !== 206) throw await this.#refusal(response, { repo, what }, call);
    const from = /^bytes (\d+)-/.exec(String(headers['content-range']))?.[1];
    if (Number(from) === offset) return { from: offset, body: this.#bytesOf(response, signal) };
    await discard(response);
    throw hubUnavailable(this.#url, 'it sent another part of the file than was asked for');
  }

  async close(): Promise<void> {
    for (const agent of this.#agents.values()) await agent.destroy();
  }

  /** undici is loaded with the first pull: most servers never pull, and it takes 10 MB. */
  async #send(url: URL, headers: Record<string, string>, signal: AbortSignal) {
    const { Agent, request } = await import('undici');
    const to = url.origin === this.#start.origin ? 'hub' : 'others';
    const isFree = to === 'hub' || (await this.#isInPrivate());
    if (!isFree && isPrivateLiteral(url, this.#isPublic))
      throw hubUnavailable(this.#url, privateReason);
    const timeout = this.#stallMs;
    const dispatcher =
      this.#agents.get(to) ??
      new Agent({
        connections: 32,
        connect: isFree ? { timeout } : { timeout, lookup: createPublicLookup(this.#isPublic) },
        headersTimeout: timeout,
        bodyTimeout: timeout,
      });
    this.#agents.set(to, dispatcher);
    return request(url, { dispatcher, signal, headers });
  }

  #isInPrivate(): Promise<boolean> {
    this.#isPrivate ??= isPrivateHub(this.#start, this.#isPublic);
    return this.#isPrivate;
  }

  /** Follows redirects itself, because it must decide at each hop whether to send the token. */
  async #get(start: URL, headers: Record<string, string>, call: HubCall): Promise<HubResponse> {
    const { signal } = call;
    const token = this.#tokenOf(call);
    let url = start;
    for (let hops = 0; hops <= maxRedirects; hops++) {
      const isHubs = url.origin === this.#start.origin;
      const authorization: Record<string, string> =
        token !== null && isHubs ? { authorization: `Bearer ${token}` } : {};
      const sent = { 'user-agent': 'millrace', ...headers, ...authorization };
      const response = await this.#send(url, sent, signal).catch((error) => {
        throw this.#unavailable(error, signal);
      });
      const { location } = response.headers;
      const { statusCode } = response;
      if (statusCode < 300 || statusCode > 399 || typeof location !== 'string') {
        return Object.assign(response, { isHubs });
      }
      await discard(response);
      const next = URL.parse(location, url);
      const fault = next === null ? 'it redirects to no address' : findFault(next, this.#start);
      if (next === null || fault !== null) throw hubUnavailable(this.#url, fault ?? '');
      url = next;
    }
    throw hubUnavailable(this.#url, 'it redirects in circles');
  }

  #tokenOf = ({ token }: HubCall) => this.#token ?? token ?? null;

  async #refusal(
    response: HubResponse,
    { repo, what }: { repo: string; what: string },
    call: HubCall,
  ): Promise<PullError> {
    await discard(response);
    const { statusCode, isHubs } = response;
    // From another host, these statuses mean that a signed URL has expired; the hub issues a new one.
    if (isHubs && (statusCode === 401 || statusCode === 403)) {
      return hubDenied(this.#url, repo, this.#tokenOf(call) !== null);
    }
    if (isHubs && (statusCode === 404 || statusCode === 410)) return hubMissing(this.#url, what);
    const seconds = Number(response.headers['retry-after'] ?? 0);
    return hubUnavailable(this.#url, `it answered ${statusCode}`, seconds > 0 ? seconds * 1000 : 0);
  }

  #unavailable(error: unknown, signal: AbortSignal): unknown {
    const { code = '', name } = error as NodeJS.ErrnoException;
    if (error instanceof PullError || (signal.aborted && name !== 'TimeoutError')) return error;
    return hubUnavailable(this.#url, reasons[code] ?? reasons[name] ?? (code || name));
  }

  async #readText({ body }: HubResponse): Promise<string> {
    const text = await readBounded(body, maxListingBytes);
    if (text === null) throw hubUnavailable(this.#url, 'its answer is too long');
    return text.toString();
  }

  async *#bytesOf(response: HubResponse, signal: AbortSignal): AsyncIterable<Buffer> {
    try {
      yield* response.body as AsyncIterable<Buffer>;
    } catch (error) {
      throw this.#unavailable(error, signal);
    }
  }
}

/** Whether the hub is in a private network, so that it may redirect there. */
async function isPrivateHub(hub: URL, isPublic: IsPublic = isPublicAddress): Promise<boolean> {
  const found = await lookup(toHost(hub), { all: true }).catch(() => []);
  return found.some(({ address }) => !isPublic(address));
}

/** Returns what is wrong with a redirect; null if it may be followed. */
export function findFault(next: URL, hub: URL): string | null {
  const isSecure = next.protocol === 'https:';
  // A hub without encryption is on the operator's own computers, and so may be the server of its files.
  const isOwn = next.protocol === hub.protocol && next.hostname === hub.hostname;
  return isSecure || isOwn ? null : 'it redirects to an address that is not https';
}

/** Reads a short body to the end, so that the connection can be reused; cuts off a long one. */
const discard = (response: Dispatcher.ResponseData) =>
  response.body.dump({ limit: 65_536 }).catch(() => {});

interface RawRepo {
  sha: string;
  siblings: {
    rfilename: string;
    size?: number;
    blobId?: string;
    lfs?: { sha256?: string; size?: number } | null;
  }[];
}

function toRepo(raw: RawRepo): HubRepo {
  if (!/^[0-9a-f]{40,64}$/.test(raw.sha)) throw new TypeError('no commit');
  return {
    commit: raw.sha,
    files: raw.siblings.map(({ rfilename, size, blobId = '', lfs }) => ({
      path: String(rfilename),
      gitId: lfs == null && /^[0-9a-f]{40}$/.test(blobId) ? blobId : null,
      sha256: /^[0-9a-f]{64}$/.test(lfs?.sha256 ?? '') ? (lfs?.sha256 as string) : null,
      size: Number.isSafeInteger(lfs?.size ?? size) ? (lfs?.size ?? size ?? null) : null,
    })),
  };
}
