// Connects to an endpoint: over a unix socket, or over HTTPS with our client certificate and optionally a pinned
// server certificate. Plain requests and websockets use the same connectors.

import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { Agent, buildConnector } from 'undici';
import { DriverError } from '#cloud/drivers/driver.ts';

export interface Endpoint {
  /** `unix:/path` or `https://host:8443`. */
  readonly url: string;
  /** Both are PEM; only for https. */
  readonly certificate?: string;
  readonly key?: string;
  /** SHA-256 of the server's certificate in hex. If unset, a known authority must have signed the certificate. */
  readonly serverFingerprint?: string;
  /** URLs of other members of the cluster, which use the same certificate. Only used if that is pinned. */
  readonly otherUrls?: readonly string[];
}

export interface EndpointRoute {
  readonly httpOrigin: string;
  readonly webSocketOrigin: string;
  /** Agent for all requests, bounded in connections and time. */
  readonly agent: Agent;
  /** Creates an agent with one connection of its own, and passes its socket to `onSocket` once connected. */
  dedicated(onSocket: (socket: Socket) => void): Agent;
  /** Replaces the endpoint's other addresses. */
  alsoAt(urls: readonly string[]): void;
}

const connectTimeoutMs = 5_000;
const maxConnections = 64;
/** Maximum number of other addresses. Each dead one may cost the whole timeout. */
const maxOthers = 4;

export function openRoute(endpoint: Endpoint): EndpointRoute {
  const pinned = endpoint.serverFingerprint?.toLowerCase().replaceAll(':', '');
  let others = endpoint.otherUrls ?? [];
  const direct = connectorOf(endpoint, pinned);
  const connect = pinned === undefined ? direct : inTurn(direct, () => [endpoint.url, ...others]);
  const url = endpoint.url.startsWith('unix:') ? null : new URL(endpoint.url);
  const agent = new Agent({
    connect,
    connections: maxConnections,
    pipelining: 1,
    headersTimeout: 60_000,
    bodyTimeout: 60_000,
  });
  return {
    httpOrigin: url ? url.origin : 'http://unix.socket',
    webSocketOrigin: url ? `wss://${url.host}` : 'ws://unix.socket',
    agent,
    dedicated: (onSocket) =>
      new Agent({
        connections: 1,
        bodyTimeout: 0,
        connect: (options, callback) =>
          connect(options, (...answer) => {
            if (answer[0] === null) onSocket(answer[1]);
            callback(...answer);
          }),
      }),
    alsoAt(urls) {
      others = urls.filter((one) => one !== endpoint.url).slice(0, maxOthers);
    },
  };
}

/** Tries the address that responded last first, so that a dead member costs its timeout only once. */
function inTurn(connect: buildConnector.connector, urls: () => readonly string[]) {
  let last: string | undefined;
  const attempt: (left: readonly string[], ...ask: Parameters<typeof connect>) => void = (
    [url, ...left],
    options,
    callback,
  ) => {
    const { hostname, host, port } = new URL(url ?? '');
    connect({ ...options, hostname, host, port: port || '443' }, (...answer) => {
      if (answer[0] === null) last = url;
      if (answer[0] === null || left.length === 0) callback(...answer);
      else attempt(left, options, callback);
    });
  };
  const inOrder: buildConnector.connector = (options, callback) => {
    const known = urls();
    const first = known.filter((url) => url === last);
    attempt([...first, ...known.filter((url) => url !== last)], options, callback);
  };
  return inOrder;
}

function connectorOf(endpoint: Endpoint, pinned: string | undefined): buildConnector.connector {
  if (endpoint.url.startsWith('unix:')) {
    return buildConnector({
      socketPath: endpoint.url.slice('unix:'.length),
      timeout: connectTimeoutMs,
    });
  }
  if (!endpoint.url.startsWith('https://')) {
    throw new DriverError('impossible', `"${endpoint.url}" is neither unix:/path nor https://.`);
  }
  const connect = buildConnector({
    cert: endpoint.certificate,
    key: endpoint.key,
    rejectUnauthorized: pinned === undefined,
    timeout: connectTimeoutMs,
    // The daemons have no websockets over HTTP/2.
    allowH2: false,
    // A resumed session has no certificate to compare.
    maxCachedSessions: 0,
  });
  if (pinned === undefined) return connect;
  return (options, callback) =>
    connect(options, (...answer) => {
      if (answer[0] !== null) return callback(...answer);
      const { raw } = (answer[1] as TLSSocket).getPeerCertificate();
      const seen = raw ? createHash('sha256').update(raw).digest('hex') : 'none';
      if (seen === pinned) return callback(...answer);
      answer[1].destroy();
      const message = `The server's certificate has fingerprint ${seen}, not ${pinned}.`;
      callback(new DriverError('unavailable', message), null);
    });
}
