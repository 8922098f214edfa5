// Where the server is reached and how, from the configuration.

import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import type { Config } from '#config/schema.ts';

export function readTls({ server }: Config): { cert: Buffer; key: Buffer } | null {
  if (server.tls_certificate === null || server.tls_key === null) return null;
  return { cert: readFileSync(server.tls_certificate), key: readFileSync(server.tls_key) };
}

export const isHttps = ({ server }: Config) =>
  server.tls_certificate !== null || (server.public_url?.startsWith('https://') ?? false);

export function toUrl(config: Config, { address, port, family }: AddressInfo): string {
  const { public_url, tls_certificate } = config.server;
  if (public_url !== null) return public_url.replace(/\/+$/, '');
  const everywhere = address === '0.0.0.0' || address === '::';
  const host = everywhere ? '127.0.0.1' : family === 'IPv6' ? `[${address}]` : address;
  return `${tls_certificate === null ? 'http' : 'https'}://${host}:${port}`;
}
