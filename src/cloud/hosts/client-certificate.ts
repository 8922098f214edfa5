// What hosts know this server by: a certificate from the configuration, or one made once in the data
// directory, whose key only its owner can read.

import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createIdentity, type Identity } from '#cloud/drivers/incus/client-certificate.ts';

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
    const made = createIdentity('millrace', now);
    // The certificate last: as long as it is not there, the pair is made anew.
    for (const [file, text] of [
      [key, made.key],
      [certificate, made.certificate],
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
