// Creates a reset link from outside a running server, for `millrace team reset`.

import { createAudit } from '#accounts/audit/audit.ts';
import { createPasswordResets } from '#accounts/people/password-resets.ts';
import type { Config } from '#config/schema.ts';
import { openExistingDatabase } from '#db/open.ts';
import { systemClock } from '#lib/clock.ts';
import { toUrl } from '#server/options/address.ts';

/** Null if no user has the email address. `url` replaces the configured one. Throws a StartError. */
export async function createResetLink(
  config: Config,
  email: string,
  url: string | null,
): Promise<{ link: string; expiresAt: Date } | null> {
  const { host: address, port } = config.server;
  const base = url?.replace(/\/+$/, '') ?? toUrl(config, { address, port });
  const db = await openExistingDatabase({
    url: config.database.url,
    poolSize: 1,
    dataDir: config.data_dir,
  });
  try {
    const resets = createPasswordResets(db, systemClock, createAudit(systemClock));
    const made = await resets.create(email);
    if (made === null) return null;
    return { link: `${base}/#/reset/${made.token}`, expiresAt: new Date(made.expiresAt) };
  } finally {
    await db.destroy();
  }
}
