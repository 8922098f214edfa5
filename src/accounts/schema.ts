// Wire types of the dashboard's endpoints. Times are ISO 8601.

import { closed, Maybe, noNul, OneOf, type Static, Type } from '#lib/schema/schema-builder.ts';
import { type Role, roles, scopes } from './principal.ts';

const Email = Type.String({
  minLength: 3,
  maxLength: 254,
  pattern: '^[^@\\s\\u0000]+@[^@\\s\\u0000]+$',
});
/** Without invisible characters, by which a person could pass for another one. Earlier versions accepted them. */
const NewEmail = Type.String({
  ...Email,
  pattern: '^[^@\\s\\p{C}\\p{DI}]+@[^@\\s\\p{C}\\p{DI}]+$',
});
const Password = Type.String({ minLength: 1, maxLength: 1024 });

export const IdParams = Type.Object({ id: Type.String({ pattern: '^[0-9a-f]{32}$' }) });

export const Login = Type.Object({ email: Email, password: Password }, closed);
export const Join = Type.Object(
  { token: Type.String({ minLength: 1, maxLength: 128 }), email: NewEmail, password: Password },
  closed,
);
export const PasswordReset = Type.Object(
  { token: Type.String({ minLength: 1, maxLength: 128 }), password: Password },
  closed,
);
/** The secret of an invitation or reset link. */
export const LinkToken = Type.Object(
  { token: Type.String({ minLength: 1, maxLength: 128 }) },
  closed,
);
export const PasswordChange = Type.Object(
  { current_password: Password, new_password: Password },
  closed,
);
export { type Role, roles, scopes };
export const NewInvitation = Type.Object({ role: OneOf(roles) }, closed);
export const RoleChange = Type.Object({ role: OneOf(roles) }, closed);

const Count = (description: string, maximum: number) =>
  Maybe(Type.Integer({ minimum: 1, maximum, description }));

/** Null means no limit. Members that are left out stay unchanged. */
export const Limits = Type.Object(
  {
    requests_per_minute: Count('Requests a minute.', 1_000_000_000),
    tokens_per_minute: Count('Tokens a minute, of prompts and answers.', 1_000_000_000),
    concurrent_requests: Count('Requests at the same time.', 1_000_000),
    monthly_budget: Maybe(
      Type.Number({
        // A billionth of a US dollar is the smallest amount that is counted.
        minimum: 0.000000001,
        maximum: 1_000_000,
        description: 'US dollars in a calendar month (UTC).',
      }),
    ),
  },
  closed,
);

export const Spend = Type.Object({
  month: Type.String({ description: 'UTC, e.g. 2026-11.' }),
  cost: Type.Number({ description: 'US dollars.' }),
  tokens: Type.Integer(),
  requests: Type.Integer(),
});

const KeyLabel = Type.String({ minLength: 1, maxLength: 64, pattern: '^[^\\p{Cc}]+$' });

export const NewApiKey = Type.Object(
  {
    label: KeyLabel,
    scopes: Maybe(
      Type.Array(OneOf(scopes), { minItems: 1, maxItems: scopes.length, uniqueItems: true }),
    ),
    expires_at: Maybe(Type.String({ format: 'date-time' })),
    limits: Maybe(Limits),
  },
  closed,
);

export const ApiKeyChange = Type.Object({ label: Maybe(KeyLabel), limits: Maybe(Limits) }, closed);

export const ApiKey = Type.Object({
  id: Type.String(),
  label: Type.String(),
  hint: Type.String(),
  scopes: Type.Array(OneOf(scopes)),
  created_at: Type.String(),
  created_by: Type.Union([
    Type.Object({
      id: Type.String(),
      email: Type.Union([Type.String(), Type.Null()], {
        description: 'Null if the person is no longer a member.',
      }),
    }),
    Type.Null(),
  ]),
  expires_at: Type.Union([Type.String(), Type.Null()]),
  last_used_at: Type.Union([Type.String(), Type.Null()]),
  limits: Limits,
  spend: Spend,
  key: Type.Optional(
    Type.String({ description: 'The key itself, only in the answer that made it.' }),
  ),
});

/** The parameters of every list: `before` is the `next` of the last page. At most 500 rows, 50 by default. */
export const page = {
  before: Type.Optional(Type.String({ maxLength: 64 })),
  limit: Type.Optional(Type.String({ pattern: '^([1-9][0-9]?|[1-4][0-9][0-9]|500)$' })),
};

export const PageQuery = Type.Object(page, closed);

export const ApiKeysQuery = Type.Object(
  { ...page, search: Type.Optional(Type.String({ maxLength: 64, pattern: noNul.notEmpty })) },
  closed,
);

interface Named {
  id: string;
  name: string | null;
}

/** What a removed person can no longer use: SSH keys, and the machines that were launched with one. */
export interface LostSsh {
  ssh_keys: Named[];
  machines: Named[];
}

export interface Removal extends LostSsh {
  /** Number of API keys of the member that were revoked. */
  revoked_keys: number;
}

/** What becomes of requests that the key has in progress. */
export const KeyRevocation = Type.Object(
  { running: Type.Optional(OneOf(['end', 'finish'] as const)) },
  closed,
);

/** What happens to the API keys that a removed member created. Default: revoke. */
export const MemberRemoval = Type.Object(
  { keys: Type.Optional(OneOf(['revoke', 'keep'] as const)) },
  closed,
);

export interface AuditEvent {
  id: string;
  at: string;
  action: string;
  resource_id: string | null;
  /** The name of the person, key, instance or filesystem. Null for anything else, and once it is gone. */
  resource_name: string | null;
  user_id: string | null;
  /** Null if the person is no longer a member. */
  user_email: string | null;
  api_key_id: string | null;
  api_key_label: string | null;
  address: string;
  details: Record<string, unknown>;
}

export interface Member {
  id: string;
  email: string;
  role: Role;
  joined_at: string;
  /** Number of API keys that the member created and that are not revoked. */
  api_keys: number;
}

/** Every change that the audit log records. */
export const auditActions = [
  'account.created',
  'account.limits_changed',
  'user.joined',
  'user.login_succeeded',
  'user.login_failed',
  'user.login_throttled',
  'user.logged_out',
  'user.password_changed',
  'user.password_change_failed',
  'user.password_reset_created',
  'user.password_reset',
  'member.role_changed',
  'member.removed',
  'invitation.created',
  'invitation.revoked',
  'session.ended',
  'api_key.created',
  'api_key.updated',
  'api_key.revoked',
  'conversation.shared',
  'conversation.unshared',
  'ssh_key.created',
  'ssh_key.deleted',
  'instance.created',
  'instance.updated',
  'instance.restarted',
  'instance.power_cycled',
  'instance.terminated',
  'instance.became_unhealthy',
  'instance.recovered',
  'instance.terminal_opened',
  'filesystem.created',
  'filesystem.deleted',
  'firewall_rules.updated',
  'firewall_ruleset.created',
  'firewall_ruleset.updated',
  'firewall_ruleset.deleted',
  'host.added',
  'host.drained',
  'host.resumed',
  'host.removed',
  'image.imported',
  'pull.created',
  'pull.cancelled',
  'model.stand_in',
  'weights.removed',
  'backend.created',
  'backend.changed',
  'backend.drained',
  'backend.resumed',
  'backend.removed',
  'deployment.created',
  'deployment.changed',
  'deployment.rolled_back',
  'deployment.stopped',
  'deployment.started',
  'deployment.removed',
] as const;
export type AuditAction = (typeof auditActions)[number];

export const AuditQuery = Type.Object(
  {
    ...page,
    action: Type.Optional(Type.String({ maxLength: 64, pattern: '^[a-z_]+\\.[a-z_]+$' })),
    user_id: Type.Optional(Type.String({ pattern: '^[0-9a-f]{32}$' })),
    api_key_id: Type.Optional(Type.String({ pattern: '^[0-9a-f]{32}$' })),
    resource_id: Type.Optional(Type.String({ maxLength: 64, pattern: noNul.any })),
    from: Type.Optional(Type.String({ format: 'date-time' })),
    to: Type.Optional(Type.String({ format: 'date-time' })),
  },
  closed,
);

export type Limits = Static<typeof Limits>;
export type Spend = Static<typeof Spend>;
export type ApiKey = Static<typeof ApiKey>;
export type PageQuery = Static<typeof PageQuery>;
