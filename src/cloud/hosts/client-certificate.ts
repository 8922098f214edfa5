// Client certificate by which hosts know this server: the configured one, or one created once in the data
// directory with a key that only its owner can read.

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createIdentity, type Identity } from '#cloud/drivers/incus/daemon/client-certificate.ts';

export interface CertificateFiles {
  readonly certificate: string | null;
  readonly key: string | null;
}

export function loadClientCertificate(
  dataDir: string,
  files: CertificateFiles,
  now: number,
): Identity {
  const certificate = files.certificate ?? join(dataDir, 'incus-client.crt');
  const key = files.key ?? join(dataDir, 'incus-client.key');
  if (files.certificate === null && !existsSync(certificate)) {
    const created = createIdentity('millrace', now);
    // The certificate comes last: until it exists, the pair is created again.
    for (const [file, text] of [
      [key, created.key],
      [certificate, created.certificate],
    ] as const) {
      writeFileSync(`${file}.new`, text, { mode: 0o600 });
      renameSync(`${file}.new`, file);
    }
  }
  return {
    certificate: readFileSync(certificate, 'utf8'),
    key: readFileSync(key, 'utf8'),
  };
}
