// The addresses at which the server is reached, and which of them it trusts, from the configuration.

import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import type { Config } from '#config/schema.ts';
import { isLoopback } from '#http/request-head.ts';
import { parseAddressList } from '#lib/network/address-list.ts';
import { hashToken } from '#lib/secrets/secrets.ts';
import type { MetricsAccess } from '#server/ops.ts';

export function readTls({ server }: Config): { cert: Buffer; key: Buffer } | null {
  if (server.tls_certificate === null || server.tls_key === null) return null;
  return { cert: readFileSync(server.tls_certificate), key: readFileSync(server.tls_key) };
}

export const isHttps = ({ server }: Config) =>
  server.tls_certificate !== null || (server.public_url?.startsWith('https://') ?? false);

export function toUrl(
  config: Config,
  { address, port }: Pick<AddressInfo, 'address' | 'port'>,
): string {
  const { public_url, tls_certificate } = config.server;
  if (public_url !== null) return public_url.replace(/\/+$/, '');
  const everywhere = address === '0.0.0.0' || address === '::';
  const host = everywhere ? '127.0.0.1' : address.includes(':') ? `[${address}]` : address;
  return `${tls_certificate === null ? 'http' : 'https'}://${host}:${port}`;
}

/** A server that others reach has no names of its own unless they are listed, so that any is allowed. */
export function toAllowedHosts({ server }: Config): string[] | null {
  const { host, public_url, peer_url, allowed_hosts } = server;
  const isOpen = !isLoopback(host) && allowed_hosts.length === 0;
  if (isOpen || allowed_hosts.includes('*')) return null;
  const urls = [public_url, peer_url].filter((url) => url !== null);
  return [...allowed_hosts, ...urls.map((url) => new URL(url).hostname)];
}

export const toMetricsAccess = ({ server }: Config): MetricsAccess => ({
  keyHash: server.metrics_key === null ? null : hashToken(server.metrics_key),
  isAllowed:
    server.metrics_addresses.length === 0
      ? null
      : (parseAddressList(server.metrics_addresses) ?? (() => false)),
});
