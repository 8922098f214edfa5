// Machines of one account reach each other. Drivers learn a machine's account with its firewall rules, so those of all
// machines are applied again. Released: never edit, add a migration instead.

import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`update instances set firewall_stale = 1, version = version + 1, due_at = 0
    where status in ('booting', 'active', 'unhealthy')`.execute(db);
}
