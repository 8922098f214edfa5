// Makes an endpoint trust us without a shell on it. Its operator creates a one-time token there
// (`lxc config trust add`, `incus config trust add NAME`), which holds the endpoint's addresses, the fingerprint of
// its certificate, and the secret with which it accepts ours.

import { DriverError } from '#cloud/drivers/driver.ts';
import { createDaemonClient } from './client.ts';
import type { Identity } from './client-certificate.ts';
import { type ServerInfo, tokenFields } from './flavor.ts';

export interface EnrolledEndpoint {
  readonly url: string;
  readonly serverFingerprint: string;
}

interface Token {
  readonly fingerprint: string;
  readonly addresses: readonly string[];
  readonly expiresAt: number | null;
}

export interface EnrolOptions {
  /** Replaces the addresses in the token if they can't be reached from here. */
  readonly url?: string;
  readonly now?: number;
}

const maxAddresses = 16;

export async function enrol(
  token: string,
  identity: Identity,
  options: EnrolOptions = {},
): Promise<EnrolledEndpoint> {
  const { fingerprint, addresses, expiresAt } = parseToken(token);
  if (expiresAt !== null && expiresAt < (options.now ?? Date.now())) {
    throw new DriverError('impossible', 'The token has expired: make a new one on the host.');
  }
  const urls = options.url ? [options.url] : addresses.map((address) => `https://${address}`);
  const failures: string[] = [];
  for (const url of urls.slice(0, maxAddresses)) {
    const client = createDaemonClient(
      { url, ...identity, serverFingerprint: fingerprint },
      'default',
    );
    try {
      const info = await client.get<ServerInfo>('/1.0');
      if (info.auth !== 'trusted') {
        // The daemon takes the certificate from this connection.
        await client.run('POST', '/1.0/certificates', {
          body: { type: 'client', ...tokenFields(token.trim()) },
        });
      }
      return { url, serverFingerprint: fingerprint };
    } catch (error) {
      failures.push(`${url}: ${(error as Error).message}`);
    } finally {
      await client.close();
    }
  }
  throw new DriverError('unavailable', `The host could not be enrolled. ${failures.join(' ')}`);
}

export function parseToken(token: string): Token {
  try {
    const read = JSON.parse(Buffer.from(token.trim(), 'base64').toString());
    const { fingerprint, addresses, expires_at } = read;
    if (!/^[0-9a-f]{64}$/i.test(fingerprint) || !Array.isArray(addresses) || !read.secret) {
      throw new TypeError('not a token');
    }
    const expiresAt = Date.parse(expires_at);
    // The year 1 stands for never.
    return {
      fingerprint: fingerprint.toLowerCase(),
      addresses: addresses.filter((address: unknown) => typeof address === 'string'),
      expiresAt: expiresAt > 0 ? expiresAt : null,
    };
  } catch {
    throw new DriverError('impossible', 'This is not a trust token of LXD or Incus.');
  }
}
