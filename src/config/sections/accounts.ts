// People, their limits and their usage: the sections accounts, limits and usage.

import { section } from '#config/field.ts';
import { OneOf, Type } from '#lib/schema/schema-builder.ts';

export const AccountSettings = Type.Object(
  {
    session_days: Type.Integer({
      default: 30,
      minimum: 1,
      maximum: 365,
      description: 'Days after which a session ends and a new sign-in is needed.',
    }),
    invitation_days: Type.Integer({
      default: 7,
      minimum: 1,
      maximum: 90,
      description: 'Days for which an invitation link is valid.',
    }),
    login_attempts: Type.Integer({
      default: 10,
      minimum: 1,
      maximum: 10_000,
      description:
        'Maximum number of failed sign-ins in 15 minutes as one person from one network address. A network address may fail five times as often over all people, and a person ten times as often over all network addresses. A browser that has signed in as the person before has a count of its own.',
    }),
  },
  { ...section, description: 'People and how they sign in.' },
);

export const LimitSettings = Type.Object(
  {
    key: LimitDefaults('Limits of a new API key that is created without limits of its own.'),
    account: LimitDefaults('Limits of a new account, shared by all its keys.'),
  },
  {
    ...section,
    description:
      'Default limits of the inference API for new keys and accounts. Change existing ones in the dashboard, or with `millrace keys limit` and `millrace limits set`.',
  },
);

function LimitDefaults(description: string) {
  return Type.Object(
    {
      requests_per_minute: MaybeLimit('integer', 'Requests per minute. No limit if null.'),
      tokens_per_minute: MaybeLimit(
        'integer',
        'Tokens per minute, prompt and completion together. No limit if null.',
      ),
      concurrent_requests: MaybeLimit(
        'integer',
        'Requests running at the same time. No limit if null.',
      ),
      monthly_budget: MaybeLimit(
        'number',
        'Spend in US dollars per calendar month (UTC). No limit if null.',
      ),
    },
    { ...section, description },
  );
}

function MaybeLimit(type: 'integer' | 'number', description: string) {
  return Type.Unsafe<number | null>({
    type: [type, 'null'],
    ...(type === 'integer' ? { minimum: 1 } : { exclusiveMinimum: 0 }),
    maximum: type === 'integer' ? 1_000_000_000 : 1_000_000,
    default: null,
    description,
  });
}

export const UsageSettings = Type.Object(
  {
    durability: Type.Unsafe<'batch' | 'request'>({
      ...OneOf(['batch', 'request']),
      default: 'batch',
      description:
        'When the record of a request is on disk: within 50 ms of its end (batch), or before the last byte of its response (request), which costs each response a write.',
    }),
    request_days: Type.Integer({
      default: 90,
      minimum: 1,
      maximum: 3650,
      description: 'Days for which the record of each request is kept.',
    }),
    max_rows: Type.Integer({
      default: 20_000_000,
      minimum: 1000,
      maximum: 1_000_000_000,
      description:
        'Maximum number of requests whose record is kept. Beyond it the oldest are deleted; totals stay. In SQLite, a million take about 0.2 GB.',
    }),
    hour_days: Type.Integer({
      default: 800,
      minimum: 1,
      maximum: 36_500,
      description: 'Days for which hourly totals are kept.',
    }),
  },
  {
    ...section,
    description: 'Records of requests: counts and costs, never prompts or completions.',
  },
);
