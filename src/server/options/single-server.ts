// Whether other servers may use the database of this one. What servers tell each other is left out if none do.

import type { Config } from '#config/schema.ts';

/** An SQLite file belongs to one server. PostgreSQL may have many. */
export const isSingleServer = ({ database }: Config): boolean => database.url === null;
