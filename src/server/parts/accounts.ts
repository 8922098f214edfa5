// The accounts part: API keys, sessions, members, limits, and the usage rows of every request.

import { join } from 'node:path';
import { createAuditLog } from '#accounts/audit/audit-log.ts';
import { createAuthenticator } from '#accounts/authenticate.ts';
import { createConversations } from '#accounts/conversations/conversations.ts';
import { createPresets } from '#accounts/conversations/presets.ts';
import { createApiKeys } from '#accounts/keys/api-keys.ts';
import { createLimitSettings } from '#accounts/limits/settings.ts';
import { createSpendReport } from '#accounts/limits/spend-report.ts';
import { createDevices } from '#accounts/people/devices.ts';
import { Invitations } from '#accounts/people/invitations.ts';
import { createMembers } from '#accounts/people/members.ts';
import { createPasswordResets } from '#accounts/people/password-resets.ts';
import { Sessions } from '#accounts/people/sessions.ts';
import { SignIn } from '#accounts/people/sign-in.ts';
import { createThrottle } from '#accounts/people/throttle.ts';
import { RunningRequests } from '#accounts/running-requests.ts';
import { createUsageRecorder } from '#accounts/usage/recorder.ts';
import { createUsageRequests } from '#accounts/usage/requests.ts';
import { UsageRetention } from '#accounts/usage/retention.ts';
import { createUsageSummaries } from '#accounts/usage/summaries.ts';
import { watchUsage } from '#accounts/usage/watch.ts';
import { createOutageWriter } from '#accounts/usage/writing/outage-writer.ts';
import { openSpool } from '#accounts/usage/writing/spool.ts';
import { createUsageWriter, createUsageWriterThread } from '#accounts/usage/writing/writer.ts';
import { createSshAccess } from '#cloud/resources/ssh-access.ts';
import type { PasswordCost } from '#lib/secrets/secrets.ts';
import { isHttps } from '#server/options/address.ts';
import {
  toAccountDefaults,
  toKeyDefaults,
  toOtherServers,
  toOutageMs,
  toSignInOptions,
  toSpoolBytes,
  toUsageRetention,
} from '#server/options/limits.ts';
import { isSingleServer } from '#server/options/single-server.ts';
import type { Core } from './core.ts';

export type Accounts = ReturnType<typeof openAccounts>;

export function openAccounts(
  { config, clock, db, log, audit, processId }: Core,
  nudge: () => void,
  passwordCost?: PasswordCost,
) {
  const outageMs = toOutageMs(config);
  const limitSettings = createLimitSettings(db, clock, audit, {
    keyDefaults: toKeyDefaults(config),
    otherServers: toOtherServers(config, processId),
    outageMs,
  });
  const running = new RunningRequests(db, clock);
  const onRightsLost = () => {
    running
      .check()
      .catch((error) => log.error({ err: error }, 'running requests were not checked'));
  };
  const apiKeys = createApiKeys(db, clock, audit, {
    limitSettings,
    outageMs,
    onRevoked: onRightsLost,
  });
  const throttle = createThrottle(db, clock);
  const { sessionDays, invitationDays, loginAttempts } = toSignInOptions(config);
  const sessions = new Sessions(db, clock, audit, { sessionDays, onEnded: onRightsLost });
  const invitations = new Invitations(db, clock, audit, { invitationDays });
  const devices = createDevices(db, clock);
  const passwordResets = createPasswordResets(db, clock, audit);
  const signIn = new SignIn(
    db,
    clock,
    { audit, sessions, devices, throttle, invitations, passwordResets },
    { loginAttempts, accountLimits: toAccountDefaults(config), passwordCost },
  );
  return {
    limitSettings,
    running,
    apiKeys,
    throttle,
    sessions,
    invitations,
    passwordResets,
    signIn,
    authenticator: createAuthenticator(apiKeys, sessions, { secure: isHttps(config), clock }),
    members: createMembers(db, audit, {
      sessions,
      apiKeys,
      ssh: createSshAccess(db, clock, { audit, nudge }),
    }),
    conversations: createConversations(db, clock, audit),
    presets: createPresets(db),
    spendReport: createSpendReport(db, clock),
    auditLog: createAuditLog(db),
  };
}

export type UsageParts = ReturnType<typeof openUsage>;

/** With SQLite, usage is written by a thread of its own. With PostgreSQL, it survives an outage in a file. */
export function openUsage({ config, clock, db, log, sqlite, metrics, processId }: Core) {
  const inProcess = createUsageWriter(db);
  const spool = openSpool(join(config.data_dir, 'usage-spool.db'), toSpoolBytes(config));
  const spooling = createOutageWriter(inProcess, spool, log);
  const savesFirst = config.usage.durability === 'request';
  const options = { fallback: inProcess, waitsForDisk: savesFirst };
  const writer = sqlite === null ? spooling : createUsageWriterThread(sqlite, options);
  const rows = createUsageRecorder(
    { db, clock, log, writer },
    { singleServer: isSingleServer(config), processId, savesFirst },
  );
  const retention = new UsageRetention(db, clock, log, toUsageRetention(config));
  watchUsage(metrics, () => ({
    ...rows.status(),
    spooled: spool.count(),
    refused: spooling.refused(),
    storage: retention.storage,
  }));
  return {
    rows,
    /** Writes the rows that an outage of PostgreSQL left in the data directory. */
    drainSpool: spooling.drain,
    retention,
    summaries: createUsageSummaries(db),
    requests: createUsageRequests(db),
  };
}
