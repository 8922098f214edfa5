// Wire types of the dashboard's endpoints. Times are ISO 8601.

import { Maybe, OneOf, type Static } from '../lib/schema.ts';
import { Type } from '../lib/type.ts';
import { roles, scopes } from './principal.ts';

const closed = { additionalProperties: false } as const;
const Email = Type.String({
  minLength: 3,
  maxLength: 254,
  pattern: '^[^@\\s\\u0000]+@[^@\\s\\u0000]+$',
});
const Password = Type.String({ minLength: 1, maxLength: 1024 });

export const IdParams = Type.Object({ id: Type.String({ pattern: '^[0-9a-f]{32}$' }) });

export const Login = Type.Object({ email: Email, password: Password }, closed);
export const Join = Type.Object(
  { token: Type.String({ minLength: 1, maxLength: 128 }), email: Email, password: Password },
  closed,
);
export const InvitationToken = Type.Object(
  { token: Type.String({ minLength: 1, maxLength: 128 }) },
  closed,
);
export const PasswordChange = Type.Object(
  { current_password: Password, new_password: Password },
  closed,
);
export const NewInvitation = Type.Object({ role: OneOf(roles) }, closed);
export const RoleChange = Type.Object({ role: OneOf(roles) }, closed);

export const NewApiKey = Type.Object(
  {
    label: Type.String({ minLength: 1, maxLength: 64, pattern: '^[^\\p{Cc}]+$' }),
    scopes: Maybe(
      Type.Array(OneOf(scopes), { minItems: 1, maxItems: scopes.length, uniqueItems: true }),
    ),
    expires_at: Maybe(Type.String({ format: 'date-time' })),
  },
  closed,
);

export const ApiKey = Type.Object({
  id: Type.String(),
  label: Type.String(),
  hint: Type.String(),
  scopes: Type.Array(OneOf(scopes)),
  created_at: Type.String(),
  expires_at: Type.Union([Type.String(), Type.Null()]),
  last_used_at: Type.Union([Type.String(), Type.Null()]),
  key: Type.Optional(
    Type.String({ description: 'The key itself, only in the answer that made it.' }),
  ),
});

export const AuditQuery = Type.Object(
  {
    before: Type.Optional(Type.String({ maxLength: 64 })),
    limit: Type.Optional(Type.String({ pattern: '^([1-9][0-9]?|[1-4][0-9][0-9]|500)$' })),
    action: Type.Optional(Type.String({ maxLength: 64, pattern: '^[a-z_]+\\.[a-z_]+$' })),
    user_id: Type.Optional(Type.String({ pattern: '^[0-9a-f]{32}$' })),
    api_key_id: Type.Optional(Type.String({ pattern: '^[0-9a-f]{32}$' })),
    from: Type.Optional(Type.String({ format: 'date-time' })),
    to: Type.Optional(Type.String({ format: 'date-time' })),
  },
  closed,
);

export type ApiKey = Static<typeof ApiKey>;
